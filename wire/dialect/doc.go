// Package dialect tells the dialects of lines apart. It decides by the top-level keys of an object
// alone, and reads no message.
package dialect
