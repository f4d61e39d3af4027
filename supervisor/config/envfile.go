package config

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/supervisor/config/envfile"
)

// An envSetting is a value for an environment variable, or nil to remove the variable.
type envSetting struct {
	name  string
	value *string
}

// envFiles reads a list of env files and checks each.
func envFiles(into *[]string, v value) {
	items, ok := v.items("a list of files")
	if !ok {
		return
	}
	var files []string
	for _, item := range items {
		var file string
		path(v.r.config.absolute)(&file, item)
		if file == "" {
			continue
		}
		files = append(files, file)
		if _, err := readEnvFile(context.Background(), file); err != nil && !(v.r.options.NoEnv && errors.Is(err, errNotThere)) {
			item.reject("bad-env-file", "Environment file cannot be used", fmt.Sprintf("%s: %v.", item.quoted(), err), "")
		}
	}
	*into = files
}

// readEnvFile reads NAME=value lines. Errors give the number of a line, never its content.
func readEnvFile(ctx context.Context, file string) ([]envSetting, error) {
	text, err := readAll(ctx, file)
	if err != nil {
		return nil, cause(err)
	}
	read, err := envfile.Parse(string(text))
	if err != nil {
		return nil, err
	}
	settings := make([]envSetting, 0, len(read))
	for i := range read {
		settings = append(settings, envSetting{name: read[i].Name, value: &read[i].Value})
	}
	return settings, nil
}
