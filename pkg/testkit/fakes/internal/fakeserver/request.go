package fakeserver

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"strconv"
)

// ErrMultipart is the error of [ReadParts] for a body that is not a multipart form.
var ErrMultipart = errors.New("malformed multipart form")

// ReadLimited lets read have at most maxBody bytes of a request's body, and reports whether there
// are more. Of a longer body it reads and drops as much again: a client that is still writing
// would see a broken connection instead of the answer.
func ReadLimited(r *http.Request, maxBody int64, read func(io.Reader) error) (tooLarge bool, err error) {
	body := &io.LimitedReader{R: r.Body, N: maxBody + 1}
	err = read(body)
	if body.N == 0 {
		_, _ = io.CopyN(io.Discard, r.Body, 2*maxBody)
		return true, nil
	}
	return false, err
}

// Part is a field or a file of a multipart form. FileName is "" for a field.
type Part struct {
	Name, FileName string
	Data           []byte
}

// ReadParts calls add for each part of a form until that fails. The errors are add's and
// [ErrMultipart].
func ReadParts(body io.Reader, boundary string, add func(Part) error) error {
	reader := multipart.NewReader(body, boundary)
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return ErrMultipart
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return ErrMultipart
		}
		if err := add(Part{part.FormName(), part.FileName(), data}); err != nil {
			return err
		}
	}
}

// Params are the parameters of a call, in whatever form they came.
type Params map[string]string

// AddJSON adds the fields of a JSON object, except those that are null: strings, and other values
// as JSON.
func (p Params) AddJSON(object []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return err
	}
	for name, value := range fields {
		var text string
		if string(value) == "null" {
			continue
		}
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		p[name] = text
	}
	return nil
}

// Int parses a number; fallback for a parameter that is missing or not a number.
func (p Params) Int(name string, fallback int64) int64 {
	n, err := strconv.ParseInt(p[name], 10, 64)
	if err != nil {
		return fallback
	}
	return n
}

// Clone is a copy, for the record.
func (p Params) Clone() map[string]string { return maps.Clone(p) }
