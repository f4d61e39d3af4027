package match

import (
	"math/bits"
	"slices"
)

// addUp adds up what is soft. Bit i of the sums of all who are among is as many
// words as those have cells, one bit after the other.
func (s *search) addUp(words []word) {
	s.sums = s.sums[:0]
	s.blank()
	for i, c := range s.among {
		s.held[i] = words[c.word].online
	}
	s.add(onlinePoints / unit)
	for i := range s.soft {
		s.blank()
		s.gather(s.soft[i].here)
		s.gather(s.soft[i].there)
		s.add(s.soft[i].weight)
	}
}

// add adds a weight to the sums of those who are noted.
func (s *search) add(weight uint) {
	for ; weight != 0; weight &= weight - 1 {
		s.carry = append(s.carry[:0], s.held...)
		s.addFrom(bits.TrailingZeros(weight))
	}
}

// addFrom adds the carry to a bit of the sums, what that carries to the next,
// and so on. There are as many bits as were needed so far.
func (s *search) addFrom(bit int) {
	n := len(s.carry)
	for carries := true; carries; bit++ {
		if missing := (bit+1)*n - len(s.sums); missing > 0 {
			s.sums = extended(s.sums, missing)
		}
		carries = addBit(s.sums[bit*n:(bit+1)*n], s.carry)
	}
}

func addBit(sum, carry []uint64) bool {
	var carries uint64
	carry = carry[:len(sum)]
	for i, c := range carry {
		both := sum[i] & c
		sum[i] ^= c
		carry[i] = both
		carries |= both
	}
	return carries != 0
}

// narrow leaves among the best only those with the highest sum, and returns it:
// those with the highest bit if there are any, of those with the next, and so
// on.
func (s *search) narrow() (units int) {
	n := len(s.among)
	for end := len(s.sums); end > 0; end -= n {
		units <<= 1
		if bit := s.sums[end-n : end]; s.anyWith(bit) {
			units++
			for i := range bit {
				s.among[i].bits &= bit[i]
			}
		}
	}
	return units
}

func (s *search) anyWith(bit []uint64) bool {
	var with uint64
	for i, c := range s.among[:len(bit)] {
		with |= c.bits & bit[i]
	}
	return with != 0
}

// choose is the least key of those who are left.
func (s *search) choose(keys [][64]uint64) uint64 {
	least := uint64(noKey)
	for _, c := range s.among {
		of := &keys[c.word]
		switch n := bits.OnesCount64(c.bits); {
		case n < few:
			least = min(least, leastOfFew(of, c.bits))
		case n < len(of):
			least = min(least, leastOfMany(of, c.bits))
		default:
			least = min(least, slices.Min(of[:]))
		}
	}
	return least
}

// few is where looking for the bits that are set begins to cost more than
// looking at all 64, as measured.
const few = 20

func leastOfFew(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for ; left != 0; left &= left - 1 {
		least = min(least, keys[bits.TrailingZeros64(left)&63])
	}
	return least
}

// leastOfMany asks no agent whether it is left, which would often be guessed
// wrong: the keys of those who are not are made too great.
func leastOfMany(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for _, key := range keys {
		least = min(least, key|(left&1-1))
		left >>= 1
	}
	return least
}

// extended is a slice with so many more words, all of them 0.
func extended(words []uint64, n int) []uint64 {
	had := len(words)
	words = slices.Grow(words, n)[:had+n]
	clear(words[had:])
	return words
}
