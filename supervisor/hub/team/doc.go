// Package team turns a configuration into the settings of the supervisor.
package team
