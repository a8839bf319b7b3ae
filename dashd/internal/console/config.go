package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// settings is a group's configuration as JSON has it, for a form that changes some of it and keeps the rest.
type settings map[string]any

func readSettings(raw json.RawMessage) (s settings, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&s); err != nil || s == nil {
		return nil, apierr.New(apierr.BadRequest, "The config is no JSON object: change it as JSON.")
	}
	return s, nil
}

// at is the section that has a setting, and its name there. A section that is missing is made if that is asked for.
func (s settings) at(path string, add bool) (section map[string]any, name string) {
	name, below, nested := strings.Cut(path, ".")
	if !nested {
		return s, name
	}
	section, _ = s[name].(map[string]any)
	if section == nil && add {
		section = map[string]any{}
		s[name] = section
	}
	return section, below
}

func (s settings) set(path string, value any) {
	delete(s, groupconfig.FormerPath(path))
	section, name := s.at(path, value != nil)
	if value == nil {
		delete(section, name)
		return
	}
	section[name] = value
}

// text is a setting as its field has it, "" if it is not set.
func (s settings) text(path string) string {
	section, name := s.at(path, false)
	value, ok := section[name]
	if !ok {
		value = s[groupconfig.FormerPath(path)]
	}
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		texts := make([]string, len(v))
		for i, each := range v {
			if texts[i], ok = each.(string); !ok {
				break
			}
		}
		if len(v) > 0 && texts[len(v)-1] != "" {
			return strings.Join(texts, ", ")
		}
	}
	raw, _ := json.Marshal(value) // it came from JSON
	return string(raw)
}

// parseSetting is the value that a field stands for, nil for the default.
func parseSetting(kind groupconfig.KeyKind, text string) (value any, err error) {
	switch {
	case text == "":
		return nil, nil
	case kind == groupconfig.KindSwitch:
		return text == "true", nil
	case kind == groupconfig.KindRole || kind == groupconfig.KindList:
		return parseRole(text)
	case kind == groupconfig.KindNumber && json.Unmarshal([]byte(text), new(float64)) != nil:
		return nil, errors.New("must be a number")
	case kind == groupconfig.KindObject && json.Unmarshal([]byte(text), new(map[string]any)) != nil:
		return nil, errors.New("must be a JSON object")
	case kind == groupconfig.KindNumber || kind == groupconfig.KindObject:
		return json.RawMessage(text), nil
	}
	return text, nil
}

// sections are the fields of a group's settings, with what was typed into a form that was refused, nil for none.
func sections(raw json.RawMessage, typed url.Values, problems map[string]string) (all []pages.ConfigSection) {
	s, err := readSettings(raw)
	if err != nil {
		return nil
	}
	for _, k := range groupconfig.Keys() {
		if k.Kind == groupconfig.KindOther {
			continue
		}
		field := pages.ConfigField{Key: k, Value: s.text(k.Path), Problem: problems[k.Path]}
		if typed.Has(k.Path) {
			field.Value = typed.Get(k.Path)
		}
		if len(all) == 0 || all[len(all)-1].Name != k.Section() {
			all = append(all, pages.ConfigSection{Name: k.Section()})
		}
		last := &all[len(all)-1]
		last.Fields = append(last.Fields, field)
		last.Wrong = last.Wrong || field.Problem != ""
	}
	return all
}

// saveSettings changes the settings whose fields differ from what is stored: routd stores them. problems are by the
// fields that they are about.
func (c groupPages) saveSettings(r *http.Request, g *msg.Group, address string) (changed string,
	problems map[string]string, err error) {
	s, err := readSettings(g.Config)
	if err != nil {
		return "", nil, err
	}
	problems = map[string]string{}
	var words []string
	for _, k := range groupconfig.Keys() {
		text, was := strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get(k.Path), "\r\n", "\n")), s.text(k.Path)
		if k.Kind == groupconfig.KindOther || !r.PostForm.Has(k.Path) || text == strings.TrimSpace(was) {
			continue
		}
		value, err := parseSetting(k.Kind, text)
		if err != nil {
			problems[k.Path] = plainText(err.Error())
			continue
		}
		s.set(k.Path, value)
		words = append(words, fmt.Sprintf("%s: %s → %s", k.Path, orDefault(was), orDefault(text)))
	}
	config, err := json.Marshal(s)
	if err != nil {
		return "", problems, err
	}
	var wrong []string
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		wrong = append(wrong, path+": "+problems[path])
	}
	if _, err = groupconfig.Parse(config); err != nil {
		placeProblems(err, problems)
		wrong = append(wrong, err.Error())
	}
	if len(wrong) > 0 {
		return "", problems, apierr.New(apierr.BadRequest, "Nothing was saved: %s", strings.Join(wrong, "; "))
	}
	name := strings.TrimSpace(r.PostForm.Get("name"))
	return strings.Join(words, "; "), nil, c.ask(r.Context(), "routd", http.MethodPut, address,
		msg.Group{Folder: g.Folder, Name: name, Config: config}, nil)
}

func orDefault(text string) string {
	if text == "" {
		return "default"
	}
	return pages.Line(text)
}

// placeProblems puts the mistakes in a configuration beside the fields that they are about.
func placeProblems(err error, problems map[string]string) {
	var all groupconfig.Problems
	if !errors.As(err, &all) {
		return
	}
	for _, problem := range all {
		for _, k := range groupconfig.Keys() {
			if text, ok := strings.CutPrefix(problem, k.Path+": "); ok {
				problems[k.Path] = plainText(text)
			} else if strings.HasPrefix(problem, k.Path+".") {
				problems[k.Path] = plainText(problem)
			}
		}
	}
}
