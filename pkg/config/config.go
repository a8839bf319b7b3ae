// Package config loads a daemon's settings from the environment into one typed struct.
//
// A field is a setting when it carries the tag env:"NAME". Further tags: envDefault:"…";
// doc:"one line" for the README table; secret:"true" for values that must not be shown, which
// may also be in a file named by NAME_FILE. Nested and embedded structs are walked, with
// envPrefix:"…" put before their names. An empty variable counts as unset.
package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"
)

// maxSecretFile bounds the file that NAME_FILE names; tokens and keys are far smaller.
const maxSecretFile = 64 << 10

// Problems are all the mistakes found in a configuration, one line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Load fills a T from environ, which has the form of os.Environ. It checks every variable: the
// error is a Problems with one line per mistake. If *T has a method Validate() error or
// Validate() []error, the errors it returns are added.
func Load[T any](environ []string) (T, error) {
	var cfg T
	vars := env.ToMap(environ)
	maps.DeleteFunc(vars, func(_, value string) bool { return value == "" })
	var problems Problems
	invalid := map[string]bool{}
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		if problem := s.load(vars); problem != "" {
			problems = append(problems, problem)
			invalid[s.name] = true
		}
	}
	for _, err := range validate(&cfg) {
		for _, line := range lines(err) {
			if name, _, _ := strings.Cut(line, ":"); !invalid[name] { // its zero value is no second mistake
				problems = append(problems, line)
			}
		}
	}
	if len(problems) > 0 {
		return cfg, problems
	}
	return cfg, nil
}

// Secrets returns the non-empty values of T's secret fields, with the secrets in them, for a Redactor.
func Secrets[T any](cfg T) []string {
	var values []string
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		if !s.secret || s.value.Kind() != reflect.String || s.value.Len() == 0 {
			continue
		}
		if parts, ok := s.value.Interface().(interface{ Secrets() []string }); ok {
			values = append(values, parts.Secrets()...)
			continue
		}
		values = append(values, s.value.String())
	}
	return values
}

// setting is one field of a configuration struct.
type setting struct {
	field  reflect.StructField
	value  reflect.Value
	prefix string
	name   string // of the variable, prefix included
	secret bool
}

func settings(v reflect.Value, prefix string) []setting {
	var all []setting
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case name != "":
			all = append(all, setting{
				field: field, value: v.Field(i), prefix: prefix, name: prefix + name,
				secret: field.Tag.Get("secret") == "true",
			})
		case field.Type.Kind() == reflect.Struct:
			all = append(all, settings(v.Field(i), prefix+field.Tag.Get("envPrefix"))...)
		}
	}
	return all
}

// load sets the field and returns what is wrong with the variable, "" if nothing is.
func (s setting) load(vars map[string]string) string {
	if s.secret {
		value, problem := s.readSecret(vars)
		if problem != "" {
			return problem
		}
		if value != "" {
			vars[s.name] = value
		}
	}
	// A struct with this one field, because the library's errors name fields instead of
	// variables, and field names need not be unique.
	one := reflect.New(reflect.StructOf([]reflect.StructField{s.field}))
	err := env.ParseWithOptions(one.Interface(), env.Options{Environment: vars, Prefix: s.prefix})
	if err != nil {
		return s.explain(vars[s.name], err)
	}
	s.value.Set(one.Elem().Field(0))
	return ""
}

func (s setting) readSecret(vars map[string]string) (value, problem string) {
	path := vars[s.name+"_FILE"]
	switch {
	case path == "":
		return vars[s.name], ""
	case vars[s.name] != "":
		return "", fmt.Sprintf("%s: both %s and %s_FILE are set, only one may be", s.name, s.name, s.name)
	}
	value, err := readSecretFile(path)
	if err != nil {
		return "", fmt.Sprintf("%s_FILE: %v", s.name, err)
	}
	return value, ""
}

func readSecretFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(content), "\r\n")
	switch {
	case len(content) > maxSecretFile:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxSecretFile)
	case value == "":
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}
