package dispatch

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// complaints gathers texts that are reported together at most once a second. Each different
// text is reported with its count.
type complaints struct {
	mu    sync.Mutex
	told  time.Time
	count int64
	texts []complaint // the first few
	later *time.Timer // reports the texts of a second that has already had its report
}

type complaint struct {
	text  string
	count int64
}

// maxComplaints is the largest number of different texts in one report.
const maxComplaints = 5

func (c *complaints) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	i := slices.IndexFunc(c.texts, func(known complaint) bool { return known.text == text })
	switch {
	case i >= 0:
		c.texts[i].count++
	case len(c.texts) < maxComplaints:
		c.texts = append(c.texts, complaint{text: text, count: 1})
	}
}

// report reports the texts gathered since the last report. If that was less than a second ago, they are reported when
// the second is over, even if the agent is silent until then.
func (c *complaints) report(now time.Time, complain func(text string, count int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := time.Second - now.Sub(c.told)
	switch {
	case c.count == 0:
	case wait <= 0:
		c.tell(now, complain)
	case c.later == nil:
		c.later = time.AfterFunc(wait, func() { c.flush(now.Add(wait), complain) })
	}
}

// flush reports the remaining texts at once.
func (c *complaints) flush(now time.Time, complain func(text string, count int64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(now, complain)
}

func (c *complaints) tell(now time.Time, complain func(text string, count int64)) {
	if c.later != nil {
		c.later.Stop()
		c.later = nil
	}
	if c.count == 0 {
		return
	}
	more := c.count
	for _, one := range c.texts {
		more -= one.count
	}
	for i, one := range c.texts {
		text := one.text
		if one.count > 1 {
			text += fmt.Sprintf(" (%d times)", one.count)
		}
		if i == len(c.texts)-1 && more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
			one.count += more
		}
		complain(text, one.count)
	}
	c.told, c.count, c.texts = now, 0, nil
}
