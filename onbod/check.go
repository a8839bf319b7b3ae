package main

import (
	"context"
	"fmt"
	"io"
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
		_, err = fmt.Fprintln(out, "warning: OPERATORS is not set: requests are decided in the dashboard and by `onbod approve` alone, and no operator is notified")
	}
	return err
}
