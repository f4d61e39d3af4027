package cli

import (
	_ "embed" // notices
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

// Version is the version of this program.
const Version = "0.1.0"

// build is the JSON answer of version.
type build struct {
	FormatVersion string `json:"format_version"`
	Version       string `json:"version"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	Commit        string `json:"commit"`
	Modified      bool   `json:"modified"` // built from a changed checkout
}

func thisBuild() build {
	b := build{FormatVersion: wire.FormatVersion, Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				b.Commit = setting.Value
			case "vcs.modified":
				b.Modified = setting.Value == "true"
			}
		}
	}
	return b
}

// VersionLine returns the build in one line.
func VersionLine() string {
	b := thisBuild()
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit[:min(7, len(b.Commit))]
		if b.Modified {
			commit += " changed"
		}
	}
	return fmt.Sprintf("orchestrator %s (%s, %s/%s%s)", b.Version, b.Go, b.OS, b.Arch, commit)
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
	return a.Print("%s\n", VersionLine())
}

// showLicenses prints the notices of all modules.
func (a *App) showLicenses() error {
	if a.Flags.JSON {
		return a.Document(licenses{FormatVersion: wire.FormatVersion, Notices: notices})
	}
	return a.Print("%s", notices)
}
