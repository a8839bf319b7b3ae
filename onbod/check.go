package main

import (
	"context"
	"fmt"
	"io"

	"arizuko/pkg/facts"
)

// check returns what is wrong with the configuration, and prints what an operator should look at.
func check(_ context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if _, err := cfg.Secret(); err != nil {
		return err
	}
	if len(cfg.Operators) == 0 {
		var l facts.List
		l.UnsetOperators()
		_, err = fmt.Fprintln(out, "warning:", l.Found[0])
	}
	return err
}
