// Package fakeserver has the parts that the fakes of platforms share: the HTTP server that can be made
// unreachable, the queue of injected faults, the events that can be repeated and reordered, the record
// of calls that tests wait for, and the reading of requests. A fake embeds [Host], [Record], [Faults]
// and [Events].
package fakeserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
)

// ErrFault is the error of a call that a fault kept from being carried out.
var ErrFault = errors.New("injected fault")

// Abort closes the connection of a request without an answer. It does not return.
func Abort() { panic(http.ErrAbortHandler) }

// WriteRaw answers with body as it is; status 0 is 200.
func WriteRaw(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(cmp.Or(status, http.StatusOK))
	_, _ = w.Write([]byte(body)) // the client is gone
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}
