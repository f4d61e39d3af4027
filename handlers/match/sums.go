package match

import (
	"math/bits"
	"slices"
)

// addUp adds up the soft points. sums holds one bit of all sums after the other, with one word
// for each candidate cell.
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

// add adds a weight to the sums of the agents in held.
func (s *search) add(weight uint) {
	for ; weight != 0; weight &= weight - 1 {
		s.carry = append(s.carry[:0], s.held...)
		s.addFrom(bits.TrailingZeros(weight))
	}
}

// addFrom adds carry to a bit of the sums and propagates the carries. It adds bits as needed.
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

// narrow keeps only the candidates with the highest sum, and returns the sum. It goes from the
// highest bit to the lowest.
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

// choose returns the smallest key of the candidates.
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

// few is the number of set bits from which a scan of all 64 is faster, as measured.
const few = 20

func leastOfFew(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for ; left != 0; left &= left - 1 {
		least = min(least, keys[bits.TrailingZeros64(left)&63])
	}
	return least
}

// leastOfMany avoids branches, which would often be mispredicted: it makes the keys of other
// agents too large.
func leastOfMany(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for _, key := range keys {
		least = min(least, key|(left&1-1))
		left >>= 1
	}
	return least
}

// extended returns a slice with n more words, all 0.
func extended(words []uint64, n int) []uint64 {
	had := len(words)
	words = slices.Grow(words, n)[:had+n]
	clear(words[had:])
	return words
}
