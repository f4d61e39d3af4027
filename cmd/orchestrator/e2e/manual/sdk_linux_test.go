package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
)

// The libraries that the program writes can be installed without a network, from their folders and from their packages.
// An agent that uses them does a task.
func TestSDK(t *testing.T) {
	t.Parallel()
	for language, test := range map[string]struct {
		needs   []string
		file    string // the agent
		text    string
		command string
		install [][]string // ways to install it
	}{
		"python": {
			needs: []string{"python3"}, file: "agent.py", command: `["python3", "agent.py"]`,
			text: "from orchestrator_agent import Connection\n\nConnection().work(lambda job: \"hello, \" + job.task[\"name\"])\n",
			install: [][]string{
				{"python3", "-m", "pip", "install", "--no-index", "--target", "packages", "./sdk"},
				{"sh", "-c", "rm -r packages && python3 -m pip wheel --no-index --wheel-dir wheels ./sdk && python3 -m pip install --no-index --target packages wheels/*.whl"},
			},
		},
		"typescript": {
			needs: []string{"node", "npm"}, file: "agent.mjs", command: `["node", "agent.mjs"]`,
			text: "import { connect } from \"@orchestrator/agent\";\n\nawait connect().work((job) => `hello, ${job.task.name}`);\n",
			install: [][]string{
				{"npm", "install", "--offline", "--no-audit", "--no-fund", "./sdk"},
				{"sh", "-c", "rm -r node_modules && npm pack --offline ./sdk && npm install --offline --no-audit --no-fund ./*.tgz"},
			},
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for _, program := range test.needs {
				if !stage.HasRuntime(t, program) {
					return
				}
			}
			s := stage.New(t, "agent \"a\" {\n  command = "+test.command+"\n  env = { PYTHONPATH = \"packages\", PYTHONDONTWRITEBYTECODE = \"1\" }\n}\n").Ship()
			require.Contains(t, s.Ask("sdk", language, "sdk"), "Next:  ")
			s.Write(test.file, test.text)
			for _, way := range test.install {
				install := exec.Command(way[0], way[1:]...)
				install.Dir, install.Env = s.Dir, append(os.Environ(), "HOME="+s.Dir, "PIP_DISABLE_PIP_VERSION_CHECK=1")
				said, err := install.CombinedOutput()
				require.NoError(t, err, "%v: %s", way, said)
				s.Up("--json")
				s.WaitForEvents(1, "agent.started", "a")
				require.Contains(t, s.Ask("task", "add", "world", "--wait", "--timeout", "2m"), "result: hello, world")
				s.Stop()
			}
			_, stderr, code := s.Call("sdk", language, "sdk")
			require.Equal(t, cli.ExitConflict, code)
			require.Contains(t, stderr, "sdk is not empty")
			s.Ask("sdk", "--force", language, "sdk")
		})
	}
}

// The libraries have the version of the program, and its license.
func TestSDKVersion(t *testing.T) {
	t.Parallel()
	for file, line := range map[string]string{
		"python/pyproject.toml":                 "\nversion = \"" + build.Version + "\"\n",
		"python/orchestrator_agent/__init__.py": "\n__version__ = \"" + build.Version + "\"  #",
		"typescript/package.json":               "\n  \"version\": \"" + build.Version + "\",\n",
	} {
		text, err := os.ReadFile(filepath.Join("../../../../agents", file))
		require.NoError(t, err)
		require.Contains(t, string(text), line, file)
	}
	license, err := os.ReadFile("../../../../LICENSE")
	require.NoError(t, err)
	for _, language := range []string{"python", "typescript"} {
		text, err := os.ReadFile(filepath.Join("../../../../agents", language, "LICENSE"))
		require.NoError(t, err)
		require.Equal(t, string(license), string(text), language)
	}
}
