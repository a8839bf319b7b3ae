package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Table renders a configuration struct as a markdown table: one row per variable with its default and its meaning.
// Those of the structs in shared are left out.
func Table[T any](cfg T, shared ...any) string {
	var b strings.Builder
	b.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	elsewhere := map[string]bool{}
	for _, of := range shared {
		for _, s := range settings(reflect.ValueOf(of), "") {
			elsewhere[s.name] = true
		}
	}
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		if elsewhere[s.name] {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.label(), cell.Replace(s.defaultText()), cell.Replace(s.doc()))
	}
	return b.String()
}

// Undocumented names the variables whose field has no doc tag.
func Undocumented[T any](cfg T) []string {
	var names []string
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		if s.doc() == "" {
			names = append(names, s.name)
		}
	}
	return names
}

func (s setting) doc() string { return s.field.Tag.Get("doc") }

func (s setting) label() string {
	if s.secret {
		return fmt.Sprintf("`%s` (or `%s_FILE`)", s.name, s.name)
	}
	return "`" + s.name + "`"
}

func (s setting) defaultText() string {
	if value := s.field.Tag.Get("envDefault"); value != "" {
		return "`" + value + "`"
	}
	for _, option := range strings.Split(s.field.Tag.Get("env"), ",")[1:] {
		if option == "required" || option == "notEmpty" {
			return "required"
		}
	}
	return ""
}
