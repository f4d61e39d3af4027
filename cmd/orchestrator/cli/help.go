package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/site"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// helpCommand returns the help command.
func (a *App) helpCommand() *cobra.Command {
	var html string
	verb := &cobra.Command{
		Use:   "help [COMMAND|TOPIC [SECTION]|CODE]",
		Short: "Show the manual",
		Long: `Explains a command, a topic or a code. Codes are error codes, reasons, codes of mistakes in
the file, and exit codes. Without an argument, help lists the topics by task. With -v it
also lists the sections of each.

--html writes the whole manual as a static web site, with search. Any web server can serve
the folder, and a browser can open its index.html directly.`,
		Example: `  orchestrator help                          the list of topics
  orchestrator help quickstart
  orchestrator help config restart           a section of a topic
  orchestrator help logs                     a command
  orchestrator help agent restart
  orchestrator help config/unknown-agent     an error code, and its fix
  orchestrator help 5                        an exit code
  orchestrator help --html site              the manual as a web site`,
		ValidArgsFunction: func(verb *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(help.TopicNames(), VerbNames(verb.Root())...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error {
			if !verb.Flags().Changed("html") {
				return a.showHelpOn(verb.Root(), args)
			}
			if html == "" || len(args) > 0 {
				return UsageError("--html takes one folder and writes the whole manual", "Write it: orchestrator help --html site")
			}
			return a.writeSite(html)
		},
	}
	verb.Flags().StringVar(&html, "html", "", "write the manual as a web site into `DIR`")
	_ = verb.MarkFlagDirname("html")
	return verb
}

// writeSite writes the manual as a web site.
func (a *App) writeSite(dir string) error {
	all, err := CodeEntries()
	if err != nil {
		return err
	}
	var codes []site.Code
	at := make(map[string]int)
	for _, e := range all {
		if e.Topic == "glossary" {
			continue
		}
		i, known := at[e.Code]
		if !known {
			i = len(codes)
			at[e.Code] = i
			codes = append(codes, site.Code{Name: e.Code})
		}
		codes[i].Rows = append(codes[i].Rows, site.Row{Head: e.Head, Text: e.Text, Topic: e.Topic})
	}
	n, err := site.Write(a.Path(dir), build.Version, codes)
	if err != nil {
		return &Failure{Exit: ExitNo, Code: CodeFailed, Message: "cannot write the manual: " + err.Error()}
	}
	if a.Flags.Quiet {
		return nil
	}
	return a.Print("%s in %s\nOpen it: %s\n", term.Count(n, "page"), dir, filepath.Join(dir, "index.html"))
}

// showHelpOn prints the help on one thing. A name of both a topic and a command, such as session,
// is the topic. Its page refers to the command.
func (a *App) showHelpOn(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return a.showContents()
	}
	topic := args[0]
	if also, ok := help.AlsoCalled[topic]; ok {
		topic = also
	}
	known := slices.Contains(help.TopicNames(), topic)
	if known && len(args) == 1 {
		return a.showTopic(root, topic)
	}
	verb, rest, err := root.Find(args)
	isVerb := err == nil && verb != root && len(rest) == 0
	if title := strings.Join(args[1:], " "); known && (!isVerb || isSection(topic, title)) {
		var below []string
		if err == nil && verb != root && !isVerb {
			below = VerbNames(verb)
		}
		return a.showSection(topic, title, isVerb, below)
	}
	if isVerb {
		verb.InitDefaultHelpFlag()
		a.showHelp(verb)
		return nil
	}
	return a.explain(root, args)
}

func (a *App) showTopic(root *cobra.Command, topic string) error {
	text, err := help.ReadTopic(topic)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.Document(help.Page{FormatVersion: wire.FormatVersion, Topic: topic, Markdown: text})
	}
	if slices.Contains(VerbNames(root), topic) {
		text += "\nThe command of that name: orchestrator " + topic + " --help\n"
	}
	return a.page(a.readable(help.WithSections(topic, text)))
}

// isSection reports whether the contents of a page have a title.
func isSection(topic, title string) bool {
	page, err := help.ReadTopic(topic)
	titles, _ := help.Sections(page)
	return err == nil && slices.ContainsFunc(titles, func(t string) bool { return strings.EqualFold(t, title) })
}

// showSection prints the sections of a page that a title names. There may be a command of that name, too. The command of
// the name of the page may have the commands below.
func (a *App) showSection(topic, title string, isVerb bool, below []string) error {
	page, err := help.ReadTopic(topic)
	if err != nil {
		return err
	}
	text := help.FindSections(page, title)
	if text == "" {
		titles, inside := help.Sections(page)
		return UsageError(fmt.Sprintf("%s has no section %q%s", topic, title, DidYouMean(title, slices.Concat(titles, inside, below))), "Its sections: "+strings.Join(titles, " · "))
	}
	if a.Flags.JSON {
		return a.Document(help.Page{FormatVersion: wire.FormatVersion, Topic: topic, Markdown: text})
	}
	if isVerb {
		text += "\nThe command of that name: orchestrator " + topic + " " + strings.ToLower(title) + " --help\n"
	}
	return a.page(a.readable(text))
}

// readable formats a page for the width of the terminal.
func (a *App) readable(markdown string) string {
	return term.Readable(markdown, a.Paint(a.Stdout), a.proseWidth())
}

// proseWidth returns the width of text: that of the terminal, but at most 100 columns.
func (a *App) proseWidth() int { return min(term.Columns(a.Stdout, 80), 100) }

// contents is the JSON answer of help without an argument.
type contents struct {
	FormatVersion string        `json:"format_version"`
	Topics        []contentLine `json:"topics"`
}

type contentLine struct {
	Topic    string   `json:"topic"`
	About    string   `json:"about"`
	Part     string   `json:"part"`
	Sections []string `json:"sections"`
}

func (a *App) showContents() error {
	answer := contents{FormatVersion: wire.FormatVersion}
	width := a.proseWidth()
	var b strings.Builder
	b.WriteString("The manual, by task.\n")
	part := ""
	for _, c := range help.Chapters {
		page, err := help.ReadTopic(c.Topic)
		if err != nil {
			return err
		}
		sections, _ := help.Sections(page)
		answer.Topics = append(answer.Topics, contentLine{Topic: c.Topic, About: c.About, Part: c.Part, Sections: sections})
		if part != c.Part {
			part = c.Part
			fmt.Fprintf(&b, "\n%s\n", a.Paint(a.Stdout).Strong(part))
		}
		b.WriteString("  " + term.Pad(c.Topic, 17) + c.About + "\n")
		for _, l := range help.Lookups[c.Topic] {
			b.WriteString("    " + term.Pad(l.Word, 15) + l.About + "\n")
		}
		if a.Flags.Verbose && len(sections) > 0 {
			for line := range strings.Lines(term.Readable(help.TitleList(c.Topic, sections), a.Paint(a.Stdout), width-4)) {
				b.WriteString("    " + line)
			}
		}
	}
	b.WriteString(`
  orchestrator help TOPIC           a page
  orchestrator help TOPIC SECTION   a section, for example: help config restart
  orchestrator help COMMAND         a command; orchestrator alone lists all
  orchestrator help CODE            an error code and its fix, or a word
  orchestrator help --html DIR      all pages as a web site, with search
`)
	if a.Flags.JSON {
		return a.Document(answer)
	}
	return a.page(b.String())
}

// codeHeads are the heads of the columns of codes. A table of the manual with such a column
// explains the codes in it.
var codeHeads = []string{"Code", "Error code", "Reason", "Word"}

// codePages are the pages with tables of codes. Pages with remedies come last, as in an
// answer.
var codePages = []string{"glossary", "exit-codes", "http", "protocol", "bus", "delegation", "verified", "troubleshooting", "config-codes"}

// explained is the JSON answer of help CODE.
type explained struct {
	FormatVersion string        `json:"format_version"`
	Code          string        `json:"code"`
	Entries       []explanation `json:"entries"`
}

// An explanation is the text on a code in one column of a page.
type explanation struct {
	Code  string `json:"-"`
	Topic string `json:"topic"`
	Head  string `json:"head"`
	Text  string `json:"text"`
}

// explain prints the explanations of a code. It returns an error for an unknown code.
func (a *App) explain(root *cobra.Command, args []string) error {
	all, err := CodeEntries()
	if err != nil {
		return err
	}
	asked := strings.Join(args, " ")
	found := entriesOf(all, asked)
	if len(found) == 0 {
		return a.pointTo(root, asked, all)
	}
	if a.Flags.JSON {
		return a.Document(explained{FormatVersion: wire.FormatVersion, Code: found[0].Code, Entries: found})
	}
	var b strings.Builder
	said := make(map[string]bool)
	for _, e := range found {
		if !said[e.Head] { // one line for each head: the meaning is the same on every page
			fmt.Fprintf(&b, "- %s: %s\n", e.Head, e.Text)
		}
		said[e.Head] = true
	}
	more := found[len(found)-1].Topic
	if place, ok := help.SectionOf(asked); ok {
		more = place.Topic + " " + strings.ToLower(place.Title)
	}
	fmt.Fprintf(&b, "\nMore: `orchestrator help %s`\n", more)
	return a.Print("%s\n%s", a.Paint(a.Stdout).Strong(found[0].Code), a.readable(b.String()))
}

// pointTo prints the section on a word that is not a code. If there are several, the error lists the commands that
// show them, and otherwise the pages that contain the word.
func (a *App) pointTo(root *cobra.Command, word string, codes []explanation) error {
	sections, verbs := help.SectionsNamed(word), verbsNamed(root, word)
	if place, ok := help.SectionOf(word); ok {
		return a.showPlace(place, verbs)
	}
	if len(sections) == 1 && len(verbs) == 0 {
		return a.showPlace(sections[0], nil)
	}
	message := fmt.Sprintf("no page is named %q", word)
	if see := slices.Concat(verbs, sectionCommands(sections)); len(see) > 0 {
		return UsageError(message, "See:\n"+firstOf(see, 6))
	}
	if topics := help.Mentioning(word); len(topics) > 0 {
		for i, topic := range topics {
			topics[i] = "orchestrator help " + topic
		}
		return UsageError(message, "Pages with this word:\n"+firstOf(topics, 6))
	}
	return UsageError(
		fmt.Sprintf("no help on %q%s", word, DidYouMean(word, slices.Concat(help.TopicNames(), VerbNames(root), codesOf(codes)))),
		"Topics: orchestrator help     Commands: orchestrator     Codes: orchestrator help troubleshooting",
	)
}

// showPlace prints a section, and the commands that show the help of related commands.
func (a *App) showPlace(place help.Place, verbs []string) error {
	page, err := help.ReadTopic(place.Topic)
	if err != nil {
		return err
	}
	text := help.FindSections(page, place.Title)
	if a.Flags.JSON {
		return a.Document(help.Page{FormatVersion: wire.FormatVersion, Topic: place.Topic, Markdown: text})
	}
	text = strings.TrimRight(text, "\n") + fmt.Sprintf("\n\nThe whole page: `orchestrator help %s`\n", place.Topic)
	for _, verb := range verbs {
		text += fmt.Sprintf("\nThe command: `%s`\n", verb)
	}
	return a.page(a.readable(text))
}

// sectionCommands returns the commands that show sections.
func sectionCommands(sections []help.Place) (commands []string) {
	for _, s := range sections {
		commands = append(commands, "orchestrator help "+s.Topic+" "+strings.ToLower(s.Title))
	}
	return commands
}

// verbsNamed returns the commands that show the help of the commands with a name, at any depth.
func verbsNamed(parent *cobra.Command, name string) (commands []string) {
	for _, verb := range parent.Commands() {
		if !verb.Hidden && verb.Name() == name {
			commands = append(commands, verb.CommandPath()+" --help")
		}
		commands = append(commands, verbsNamed(verb, name)...)
	}
	return commands
}

// firstOf returns the first n lines of a list, and the number of the rest.
func firstOf(lines []string, n int) string {
	if len(lines) <= n {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("%s\nand %d more", strings.Join(lines[:n], "\n"), len(lines)-n)
}

// entriesOf returns the entries of a code: exact matches, or else matches that ignore case
// or the prefix config/.
func entriesOf(all []explanation, code string) []explanation {
	for _, same := range []func(explanation) bool{
		func(e explanation) bool { return e.Code == code },
		func(e explanation) bool { return strings.EqualFold(e.Code, code) },
		func(e explanation) bool { return strings.EqualFold(e.Code, "config/"+code) },
	} {
		var found []explanation
		for _, e := range all {
			if same(e) {
				found = append(found, e)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func codesOf(all []explanation) (codes []string) {
	for _, e := range all {
		codes = append(codes, e.Code)
	}
	return codes
}

// CodeEntries returns the entries of all tables of codes.
func CodeEntries() (all []explanation, err error) {
	for _, topic := range codePages {
		text, err := help.ReadTopic(topic)
		if err != nil {
			return nil, err
		}
		all = append(all, tableEntries(topic, text)...)
	}
	return all, nil
}

// tableEntries returns the entries of a page: one for each column beside the code.
func tableEntries(topic, text string) (all []explanation) {
	var heads []string // of the current table
	at := -1           // column of the codes
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
			heads = nil
			continue
		}
		row := term.RowFields(line)
		if heads == nil {
			heads = row
			at = slices.IndexFunc(heads, func(head string) bool { return slices.Contains(codeHeads, head) })
			continue
		}
		if at < 0 || at >= len(row) || strings.Trim(row[at], "-") == "" {
			continue
		}
		for i, text := range row {
			if i != at && i < len(heads) && text != "" {
				all = append(all, explanation{Code: row[at], Topic: topic, Head: heads[i], Text: text})
			}
		}
	}
	return all
}
