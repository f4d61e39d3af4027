// Package web serves the web view of a team: the pages below /ui/.
//
// The pages are files below assets, which are part of the program. They are an HTTP client of the API like any other,
// in a browser: all their data and actions go through package api. That package also signs people in.
//
//	Assets  a handler of the files, for api.API.Pages
//	View    where a person finds the pages: it opens a listener if the team has none
//
// A View that is never asked opens no port and starts no goroutine. The header Content-Security-Policy limits a page to
// resources of this server.
package web
