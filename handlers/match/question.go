package match

// question is a demand to check against every agent, with its values looked up once.
type question struct {
	index                                *Index
	repo                                 []wish // one, or none
	languages, environments, tools, tags []wish
	prefer                               string
}

// wish is a value of a demand, with its holders.
type wish struct {
	text        string
	here, there *holders // in general, or in the repo
}

func (w *wish) met(slot int32) bool { return w.here.has(slot) || w.there.has(slot) }

func (x *Index) ask(d *Demand) *question {
	q := &question{
		index:        x,
		languages:    x.wishes(ofLanguage, d.Languages),
		environments: x.wishes(ofEnvironment, d.Environments),
		tools:        x.wishes(ofTool, d.Tools),
		tags:         x.wishes(ofTag, d.Tags),
		prefer:       d.Prefer,
	}
	if d.Repo == "" {
		return q
	}
	q.repo = x.wishes(ofRepo, []string{d.Repo})
	for i := range q.tools {
		w := &q.tools[i]
		w.there = x.by[value{kind: ofRepoTool, repo: d.Repo, text: w.text}]
	}
	return q
}

// wishes looks up texts without duplicates, in the order of the demand.
func (x *Index) wishes(k kind, texts []string) []wish {
	wishes := make([]wish, 0, len(texts))
	seen := make(map[string]bool, len(texts))
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			wishes = append(wishes, wish{text: text, here: x.by[value{kind: k, text: text}]})
		}
	}
	return wishes
}

// texts returns the texts of wishes.
func texts(wishes []wish) []string {
	texts := make([]string, 0, len(wishes))
	for i := range wishes {
		texts = append(texts, wishes[i].text)
	}
	return texts
}

// met returns the texts of the wishes that an agent meets.
func met(wishes []wish, slot int32) []string {
	texts := make([]string, 0, len(wishes))
	for i := range wishes {
		if wishes[i].met(slot) {
			texts = append(texts, wishes[i].text)
		}
	}
	return texts
}
