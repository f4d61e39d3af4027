// Vendorize makes the libraries of the web view from packages that npm downloads:
//
//	go run ./supervisor/web/vendorize
//
// It checks each package against the digest below, bundles the modules with esbuild, and writes
// the bundles, their licenses and vendor.sha256 into supervisor/web/assets. The output is
// checked in, so neither a build nor a run of the program needs npm.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// A pack is one package. Its digest is the integrity that package-lock.json of npm would have.
type pack struct{ name, version, digest string }

var packs = []pack{
	{name: "preact", version: "11.2.0", digest: "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg=="},
	{name: "htm", version: "3.1.1", digest: "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ=="},
	{name: "@preact/signals", version: "2.11.4", digest: "Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw=="},
	{name: "@preact/signals-core", version: "1.14.5", digest: "vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg=="},
	{name: "uplot", version: "1.6.32", digest: "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="},
	{name: "@dagrejs/dagre", version: "3.1.3", digest: "X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg=="},
	{name: "@dagrejs/graphlib", version: "4.0.6", digest: "Hjv7hbfmSBMP4nVXMFt4gusqWWHghQF0qNT4V5KHo4Jatvd+2L5VHKFnnIjXVuDnaHIRz7ZuHSnlf0RuZkOwWA=="},
}

// bundles are the generated files, each with its module.
var bundles = map[string]string{
	"vendor-ui.js": `
		import { h } from "preact";
		import htm from "htm";
		export { render, Fragment, createRef } from "preact";
		export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } from "preact/hooks";
		export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "@preact/signals";
		export { h };
		export const html = htm.bind(h);`,
	"vendor-plot.js":  `export { default } from "uplot";`,
	"vendor-graph.js": `export { Graph, layout } from "@dagrejs/dagre";`,
}

func main() {
	out := flag.String("out", "supervisor/web/assets", "folder that is written")
	flag.Parse()
	if err := vendorize(*out); err != nil {
		fmt.Fprintln(os.Stderr, "vendorize:", err)
		os.Exit(1)
	}
}

func vendorize(out string) error {
	top, err := os.MkdirTemp("", "vendorize")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	var licenses bytes.Buffer
	for _, p := range packs {
		folder := filepath.Join(top, "node_modules", filepath.FromSlash(p.name))
		if err := p.fetch(folder); err != nil {
			return fmt.Errorf("package %s: %w", p.name, err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "LICENSE"))
		if err != nil {
			return fmt.Errorf("package %s: its license: %w", p.name, err)
		}
		fmt.Fprintf(&licenses, "%s %s\n\n%s\n\n", p.name, p.version, bytes.TrimSpace(text))
	}
	files := map[string][]byte{"vendor-licenses.txt": licenses.Bytes()}
	for name, module := range bundles {
		if files[name], err = bundle(top, module); err != nil {
			return fmt.Errorf("bundle %s: %w", name, err)
		}
	}
	return write(out, files)
}

// fetch has npm download the package, checks it and unpacks it into a folder.
func (p pack) fetch(folder string) error {
	dir, err := os.MkdirTemp("", "vendorize-pack")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	npm := exec.Command("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir, p.name+"@"+p.version)
	npm.Stderr = os.Stderr
	name, err := npm.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", npm, err)
	}
	packed, err := os.ReadFile(filepath.Join(dir, filepath.Base(strings.TrimSpace(string(name)))))
	if err != nil {
		return err
	}
	sum := sha512.Sum512(packed)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != p.digest {
		return fmt.Errorf("its digest is %s and not %s", got, p.digest)
	}
	return unpack(packed, folder)
}

func unpack(packed []byte, folder string) error {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	for files := tar.NewReader(plain); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, short, _ := strings.Cut(head.Name, "/") // each path begins with package/
		if head.Typeflag != tar.TypeReg || !filepath.IsLocal(short) {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		path := filepath.Join(folder, filepath.FromSlash(short))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
}

// bundle returns the module with all that it imports, minified.
func bundle(top, module string) ([]byte, error) {
	made := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: module, ResolveDir: top},
		Bundle: true, Format: api.FormatESModule, Target: api.ES2022, LegalComments: api.LegalCommentsEndOfFile,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
	})
	if len(made.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(made.Errors, api.FormatMessagesOptions{}), ""))
	}
	return made.OutputFiles[0].Contents, nil
}

// write writes the files and the list of their digests, in the form of sha256sum.
func write(out string, files map[string][]byte) error {
	var sums strings.Builder
	for _, name := range []string{"vendor-graph.js", "vendor-licenses.txt", "vendor-plot.js", "vendor-ui.js"} {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
		if err := os.WriteFile(filepath.Join(out, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "vendor.sha256"), []byte(sums.String()), 0o644)
}
