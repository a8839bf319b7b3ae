package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"arizuko/migrations"
	"arizuko/pkg/cli"
	"arizuko/pkg/routecheck"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
)

// check returns what is wrong with the configuration and the stored routes and groups, and prints what
// an operator should look at. It reads the database itself, so that routd need not run.
func check(ctx context.Context, out io.Writer) error {
	cfg, err := loadConfig()
	if err != nil {
		return err
	}
	if _, err := cfg.Secret(); err != nil {
		return err
	}
	if _, err := os.Stat(cfg.DBPath()); cfg.DB == "" && errors.Is(err, os.ErrNotExist) {
		return nil // not migrated yet
	}
	table, err := readTable(ctx, cfg)
	if err != nil {
		return err
	}
	for _, line := range routecheck.Lines(table.Warnings(), math.MaxInt-1) {
		if _, err := fmt.Fprintln(out, "warning:", cli.PrintableLine(line)); err != nil {
			return err
		}
	}
	if notes := table.Notes(); len(notes) > 0 {
		return errors.New(cli.Printable(strings.Join(notes, "\n")))
	}
	return nil
}

func readTable(ctx context.Context, cfg Config) (table *routing.Table, err error) {
	st, err := store.OpenReadOnly(ctx, cfg.Database(), migrations.Latest())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	routes, err := st.Routes(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := st.Groups(ctx)
	return routing.New(routes, groups, cfg.impulse()), err
}
