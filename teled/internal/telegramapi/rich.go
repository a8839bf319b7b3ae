package telegramapi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// RichMessage is a message of blocks, such as headings, lists and tables. Text is all text in it: a line for
// each block, " | " between the cells of a table, and the URL of a link after its text.
type RichMessage struct {
	Text string
}

// UnmarshalJSON reads the text of blocks of any kind: a block or a part of a text is an object whose
// "text" is a string, a part, or a list of both.
func (r *RichMessage) UnmarshalJSON(value []byte) error {
	w := richWriter{}
	w.value(json.NewDecoder(bytes.NewReader(value)), "")
	r.Text = strings.TrimSpace(w.text.String())
	return nil
}

// richWriter collects text in the order in which it stands in the JSON.
type richWriter struct {
	text strings.Builder
}

// value reads one value, which belongs to a key.
func (w *richWriter) value(d *json.Decoder, key string) {
	token, err := d.Token()
	if err != nil {
		return
	}
	switch t := token.(type) {
	case string:
		switch {
		case isRichText(key):
			w.text.WriteString(t)
		case key == "url" && t != "" && !strings.HasSuffix(w.text.String(), t): // of a link, after its text
			w.text.WriteString(" (" + t + ")")
		}
	case json.Delim:
		if t == '[' {
			w.list(d, key)
		} else {
			w.object(d)
		}
	}
}

func (w *richWriter) list(d *json.Decoder, key string) {
	for first := true; d.More(); first = false {
		switch {
		case first:
		case key == "cells[]":
			w.text.WriteString(" | ")
		case !isRichText(key):
			w.newLine()
		}
		of := key
		if key == "cells" { // rows, each a list of cells
			of = "cells[]"
		}
		w.value(d, of)
	}
	_, _ = d.Token() // the bracket
}

func (w *richWriter) object(d *json.Decoder) {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		name, _ := key.(string)
		switch name {
		case "blocks", "items", "caption", "summary", "credit", "cells":
			w.newLine()
		}
		w.value(d, name)
	}
	_, _ = d.Token() // the brace
}

func (w *richWriter) newLine() {
	if text := w.text.String(); text != "" && !strings.HasSuffix(text, "\n") {
		w.text.WriteString("\n")
	}
}

// isRichText reports whether a string under a key is shown.
func isRichText(key string) bool {
	switch key {
	case "text", "summary", "caption", "credit", "expression", "alternative_text":
		return true
	}
	return false
}
