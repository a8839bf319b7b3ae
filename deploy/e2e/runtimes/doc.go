// Package runtimes tries confined agents through the whole suite, row in and row out: in
// bubblewrap, and in containers of a real Docker engine.
package runtimes
