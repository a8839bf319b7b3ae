package config

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minSecret is the shortest secret that is redacted, in bytes; shorter ones would match ordinary
// words.
const minSecret = 6

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

const redacted = "[redacted]"

// Redactor replaces secrets in texts. The zero value replaces nothing.
type Redactor struct {
	replacer *strings.Replacer
	forms    []string // of the secrets; the beginning of a long one is as good as it is, since texts may be cut
}

// NewRedactor replaces the given secrets, as they are and as they look inside quotes, JSON and
// URLs. Secrets shorter than 6 bytes are ignored.
func NewRedactor(secrets ...string) Redactor {
	var forms []string
	lower := func(escaped string) string { return percent.ReplaceAllStringFunc(escaped, strings.ToLower) }
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		quoted := strconv.Quote(s)
		asJSON, _ := json.Marshal(s) // a string always marshals
		forms = append(forms, s, quoted[1:len(quoted)-1], string(asJSON[1:len(asJSON)-1]),
			url.QueryEscape(s), url.PathEscape(s), lower(url.QueryEscape(s)), lower(url.PathEscape(s)))
	}
	// Longest first, so that no rest is left of a secret that contains another.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	if len(forms) == 0 {
		return Redactor{}
	}
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, redacted)
	}
	return Redactor{replacer: strings.NewReplacer(pairs...), forms: forms}
}

// minHead is how many bytes at the beginning of a secret are as good as the secret.
const minHead = 12

// headOf is how many bytes at the beginning of a form count as it. How an address begins is no secret.
func headOf(form string) int {
	i := strings.Index(form, "://")
	if i >= 0 {
		i += len("://")
	}
	return max(i, 0) + minHead
}

// String is text without the secrets, and without beginnings of them.
func (r Redactor) String(text string) string {
	if r.replacer == nil {
		return text
	}
	text = r.replacer.Replace(text)
	for _, form := range r.forms {
		if n := headOf(form); n < len(form) && strings.Contains(text, form[:n]) {
			text = withoutHead(text, form[:n], form[n:])
		}
	}
	return text
}

// withoutHead is text without the heads in it, and without as much of the rest of the secret as follows them.
func withoutHead(text, head, rest string) string {
	parts := strings.Split(text, head)
	for i, part := range parts[1:] {
		n := 0
		for n < min(len(part), len(rest)) && part[n] == rest[n] {
			n++
		}
		parts[i+1] = part[n:]
	}
	return strings.Join(parts, redacted)
}

// Growing is String of a text whose end is still to come: an end with which a secret may begin is left out.
func (r Redactor) Growing(text string) string {
	for n := -1; n != 0; text = text[:len(text)-n] { // the rest may end with the beginning of another secret
		n = 0
		for _, form := range r.forms {
			n = max(n, beginning(text, form))
		}
	}
	return r.String(text)
}

// beginning is how many bytes at the end of a text are the beginning of a secret, not all of it.
func beginning(text, secret string) int {
	for n := min(len(secret)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}

// Writer redacts each Write to w on its own. Below a slog handler, which passes
// a record in one Write, that covers messages, keys, groups, errors and nested values.
func (r Redactor) Writer(w io.Writer) io.Writer {
	if r.replacer == nil {
		return w
	}
	return redactingWriter{w, r}
}

type redactingWriter struct {
	w io.Writer
	r Redactor
}

func (rw redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(rw.w, rw.r.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
