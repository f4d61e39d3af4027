// Package typescript holds the library for agents in TypeScript and JavaScript, as npm installs it.
package typescript

import "embed"

// Files has the files of the npm package. The folder dist is made from src: see README.md.
//
//go:embed package.json README.md LICENSE dist
var Files embed.FS
