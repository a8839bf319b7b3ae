package pages_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"arizuko/dashd/internal/pages"
)

// sample is a page for operators with content. Each such page has one, and one for each of its other states: the tests
// of markup and looks show all of them.
type sample struct {
	name, template string
	section        string // the link in the navigation that is current
	// data is what the page shows; now is in unix ms.
	data func(now int64) any
}

// hostile is the data with a text in each of its strings.
func (s sample) hostile(text string) any {
	data := reflect.New(reflect.TypeOf(s.data(10))).Elem()
	data.Set(reflect.ValueOf(s.data(10)))
	fill(data, text)
	return data.Interface()
}

// fill puts a text into every string below a value. Named types, such as states, keep theirs.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return
		}
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String && !v.IsNil() {
			v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf(text))
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	}
}

// samples returns all samples.
func samples() []sample {
	return slices.Concat(overviewSamples(), connectSamples(), messagesSamples(), turnsSamples(), approvalsSamples(), reminderSamples(),
		chatSamples(), groupSamples(), routesSamples(), spendSamples())
}

// view renders a sample with data, in the frame of a page.
func view(t *testing.T, p *pages.Pages, w http.ResponseWriter, s sample, data any, v pages.View) {
	t.Helper()
	html, err := p.Fragment(s.template, data)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	v.Fragment, v.Section = html, s.section
	p.View(w, http.StatusOK, v)
}

// fragment writes a page's fragment without its frame.
func fragment(t *testing.T, p *pages.Pages, w http.ResponseWriter, template string, data any) {
	t.Helper()
	html, err := p.Fragment(template, data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(html)); err != nil {
		t.Fatal(err)
	}
}
