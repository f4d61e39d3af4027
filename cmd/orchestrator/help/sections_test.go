package help

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSections checks that sections are found by their titles, with their text, and that a sample
// is not taken for one.
func TestSections(t *testing.T) {
	const page = "# Page\n\nIntroduction.\n\n## One\n\n```\n## no section\n```\n\n### Below\n\nText.\n\n## One more\n\nEnd.\n"
	titles, inside := Sections(page)
	require.Equal(t, []string{"One", "One more"}, titles)
	require.Equal(t, []string{"Below"}, inside)
	require.Equal(t, "## One\n\n```\n## no section\n```\n\n### Below\n\nText.\n\n", FindSections(page, "one"))
	require.Equal(t, "### Below\n\nText.\n\n", FindSections(page, "below"))
	require.Equal(t, "## One more\n\nEnd.\n", FindSections(page, "more"))
	require.Empty(t, FindSections(page, "no section"))
	require.Empty(t, FindSections(page, ""))
	require.Equal(t, page, WithSections("page", page), "a short page")
	long := page + strings.Repeat("## Another\n", longPage)
	require.Contains(t, WithSections("page", long), "\n\nSections: One · One more · Another")
}

// TestChapters checks that each page is in the contents once, and has a heading.
func TestChapters(t *testing.T) {
	files, err := Topics.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, Chapters, len(files))
	for _, c := range Chapters {
		page, err := ReadTopic(c.Topic)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(page, "# "), c.Topic)
		titles, _ := Sections(page)
		for _, title := range titles {
			require.Contains(t, FindSections(page, strings.ToLower(title)), "## "+title+"\n")
		}
	}
}

// TestSectionOf checks that each word leads to a section.
func TestSectionOf(t *testing.T) {
	for word, place := range sectionOf {
		page, err := ReadTopic(place.Topic)
		require.NoError(t, err, word)
		require.Contains(t, FindSections(page, strings.ToLower(place.Title)), " "+place.Title+"\n", word)
		found, ok := SectionOf(strings.ToUpper(word) + "s")
		require.True(t, ok, word)
		require.Equal(t, place, found, word)
	}
	for topic, lines := range Lookups {
		for _, l := range lines {
			place, _ := SectionOf(l.Word)
			require.Equal(t, topic, place.Topic, "%s is a section of the page above it", l.Word)
		}
	}
	_, ok := SectionOf("")
	require.False(t, ok)
}

// TestMentioning checks that only whole words are found.
func TestMentioning(t *testing.T) {
	require.Contains(t, Mentioning("poison"), "glossary")
	require.Empty(t, Mentioning("poiso"))
	require.Empty(t, Mentioning(" "))
}
