package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
)

// explain turns an error of the env library into one line that names the variable. It never
// shows a secret's value: the parser's message, which may quote it, is left out unless it is a wanted.
func (s setting) explain(value string, err error) string {
	if errors.As(err, new(env.VarIsNotSetError)) || errors.As(err, new(env.EmptyVarError)) {
		if s.secret {
			return fmt.Sprintf("%s: required, set it or %s_FILE", s.name, s.name)
		}
		return s.name + ": required"
	}
	if what, ok := cause(err).(wanted); ok { //nolint:errorlint // cause has unwrapped it
		return s.name + ": " + string(what)
	}
	if s.secret {
		return fmt.Sprintf("%s: not a valid %s", s.name, s.field.Type)
	}
	if value == "" {
		value = s.field.Tag.Get("envDefault")
	}
	return fmt.Sprintf("%s=%.80q: %s", s.name, value, oneLine(reason(err)))
}

// cause is the innermost error. The library's errors do not unwrap.
func cause(err error) error {
	var parse env.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
	}
	var value env.ParseValueError
	if errors.As(err, &value) {
		err = value.Err
	}
	return err
}

// reason is the innermost useful message.
func reason(err error) string {
	err = cause(err)
	var number *strconv.NumError
	if errors.As(err, &number) {
		err = fmt.Errorf("cannot be parsed: %w", number.Err)
	}
	return err.Error()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func validate(cfg any) []error {
	switch v := cfg.(type) {
	case interface{ Validate() []error }:
		return v.Validate()
	case interface{ Validate() error }:
		return []error{v.Validate()}
	}
	return nil
}

// lines is an error's text, one line per joined error; none for nil.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, lines(e)...)
		}
		return all
	}
	return []string{oneLine(err.Error())}
}
