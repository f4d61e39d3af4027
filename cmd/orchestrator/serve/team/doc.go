// Package team turns a configuration into what the supervisor works with.
package team
