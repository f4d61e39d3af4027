package cli

import (
	_ "embed" // notices
	"runtime"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/wire"
)

// buildView is the JSON answer of version.
type buildView struct {
	FormatVersion string `json:"format_version"`
	Version       string `json:"version"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	Commit        string `json:"commit"`
	Modified      bool   `json:"modified"` // built from a changed checkout
}

func thisBuild() buildView {
	commit, modified := build.Commit()
	return buildView{
		FormatVersion: wire.FormatVersion, Version: build.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Commit: commit, Modified: modified,
	}
}

// notices is written by TestNotices.
//
//go:embed notices.txt
var notices string

// licenses is the JSON answer of version --licenses.
type licenses struct {
	FormatVersion string `json:"format_version"`
	Notices       string `json:"notices"`
}

// versionCommand returns the version command.
func (a *App) versionCommand() *cobra.Command {
	var licensed bool
	verb := &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Example:           "  orchestrator version\n  orchestrator version --json\n  orchestrator version --licenses",
		Args:              ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if licensed {
				return a.showLicenses()
			}
			return a.showVersion()
		},
	}
	verb.Flags().BoolVar(&licensed, "licenses", false, "print the licenses of all modules in this program")
	return verb
}

// showVersion prints the version.
func (a *App) showVersion() error {
	if a.Flags.JSON {
		return a.Document(thisBuild())
	}
	return a.Print("%s\n", build.Line())
}

// showLicenses prints the notices of all modules.
func (a *App) showLicenses() error {
	if a.Flags.JSON {
		return a.Document(licenses{FormatVersion: wire.FormatVersion, Notices: notices})
	}
	return a.Print("%s", notices)
}
