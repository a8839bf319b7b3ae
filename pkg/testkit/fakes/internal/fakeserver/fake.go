// Package fakeserver is what the fakes of platforms have in common: serving over HTTP, being out of
// reach, calls that go wrong on demand, and the record of what a bot did, which tests wait for.
// A fake embeds Host and Record, and keeps its Faults.
package fakeserver

import (
	"cmp"
	"errors"
	"net/http"
)

// ErrSpoilt is why a call was not carried out, where a fault is to blame.
var ErrSpoilt = errors.New("spoilt by a fault")

// Break closes the connection of a request without an answer. It does not return.
func Break() { panic(http.ErrAbortHandler) }

// Garbage answers with a text as it is; status 0 is 200.
func Garbage(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(cmp.Or(status, http.StatusOK))
	_, _ = w.Write([]byte(body)) // who asked is gone
}
