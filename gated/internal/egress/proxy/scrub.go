package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// replacement is what a text becomes in an answer.
type replacement struct{ old, new string }

// replacements are those of the secrets in their usual forms, the longest first.
func (x *exchange) replacements() []replacement {
	all := slices.Clone(x.coded)
	for _, s := range x.secrets {
		for _, form := range []string{s.value, url.QueryEscape(s.value), url.PathEscape(s.value), inJSON(s.value),
			strings.ReplaceAll(s.value, "/", `\/`)} { // as PHP has it in JSON
			if form != "" {
				all = append(all, replacement{form, s.token})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b replacement) int { return len(b.old) - len(a.old) })
	return slices.Compact(all)
}

// scrub is a text without the secrets of the request.
func (x *exchange) scrub(text string) string {
	for _, r := range x.replacements() {
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	return text
}

func (x *exchange) scrubHeaders(h http.Header) {
	if len(x.secrets) == 0 {
		return
	}
	for _, values := range h {
		for i := range values {
			values[i] = x.scrub(values[i])
		}
	}
}

// scrubBody replaces the secrets in a body, and calls end before the reader knows of its end. With sameLength,
// asterisks take their place, as the frames of a WebSocket need.
func (x *exchange) scrubBody(body io.ReadCloser, sameLength bool, end func()) io.ReadCloser {
	all := x.replacements()
	if len(all) == 0 {
		return body
	}
	if sameLength {
		for i := range all {
			all[i].new = strings.Repeat("*", len(all[i].old))
		}
	}
	return &scrubber{ReadCloser: body, all: all, chunk: make([]byte, 16<<10), end: end}
}

// scrubber is a body whose secrets are replaced as it is read. It holds back no more than what may be the beginning of
// a secret.
type scrubber struct {
	io.ReadCloser
	all   []replacement
	chunk []byte
	held  []byte // read, and not yet looked at for good
	ready []byte // looked at
	err   error
	end   func()
}

func (s *scrubber) Read(b []byte) (int, error) {
	for len(s.ready) == 0 && s.err == nil {
		var n int
		n, s.err = s.ReadCloser.Read(s.chunk)
		s.held = append(s.held, s.chunk[:n]...)
		s.look()
	}
	if len(s.ready) == 0 {
		s.end()
		return 0, s.err
	}
	n := copy(b, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// look moves what is held to what is ready, except for an end that may be the beginning of a secret.
func (s *scrubber) look() {
	out := s.ready[:0:0]
	for {
		at, found := -1, replacement{}
		for _, r := range s.all {
			if i := bytes.Index(s.held, []byte(r.old)); i >= 0 && (at < 0 || i < at) {
				at, found = i, r
			}
		}
		if at < 0 {
			break
		}
		out = append(append(out, s.held[:at]...), found.new...)
		s.held = s.held[at+len(found.old):]
	}
	keep := 0
	if s.err == nil {
		keep = s.beginning()
	}
	cut := len(s.held) - keep
	s.ready = append(out, s.held[:cut]...)
	s.held = append([]byte(nil), s.held[cut:]...)
}

// beginning is how many bytes at the end of what is held may be the beginning of a secret.
func (s *scrubber) beginning() (longest int) {
	for _, r := range s.all {
		for n := min(len(r.old)-1, len(s.held)); n > longest; n-- {
			if bytes.HasSuffix(s.held, []byte(r.old[:n])) {
				longest = n
			}
		}
	}
	return longest
}
