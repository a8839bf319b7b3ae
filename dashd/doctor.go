package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"arizuko/dashd/internal/doctor"
	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
	"arizuko/pkg/facts"
)

// examine is the subcommand doctor. Its error has the exit code: 78 if the configuration is wrong, 1 if there
// is another problem.
func examine(ctx context.Context, args []string, out io.Writer) error {
	line := cli.Daemon{Name: name}.Line("doctor [--json] [--deep] [--fix]", out)
	asJSON := line.Bool("json", false, "print the findings as JSON")
	deep := line.Bool("deep", false, "read the whole database and check it: minutes if it is large")
	fix := line.Bool("fix", false, "first repair what is safe to repair")
	if _, err := line.Read(args, 0); err != nil {
		return err
	}
	cfg, problems := loadConfig()
	examination := doctorConfig(cfg)
	if problems != nil {
		examination.Problems = strings.Split(problems.Error(), "\n")
	}
	examination.Bin, examination.Deep = programs(), *deep
	report := doctor.Examine(ctx, examination)
	if *fix {
		lines := out
		if *asJSON {
			lines = io.Discard
		}
		gated, err := daemon.ClientOf(cfg.Base, "gated", cfg.GatedURL)
		if err != nil {
			return err
		}
		doctor.Fix(ctx, examination, gated, report.Findings, lines)
		report = doctor.Examine(ctx, examination)
	}
	show := report.Print
	if *asJSON {
		show = report.PrintJSON
	}
	if err := show(out); err != nil {
		return err
	}
	if code := report.Exit(); code != daemon.ExitOK {
		return &daemon.ExitError{Code: code, Err: errors.New(report.Summary())}
	}
	return nil
}

// programs is the folder with the programs of all daemons, "" where that is not known.
func programs() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(self)
}

// doctorConfig is dashd's configuration for the doctor.
func doctorConfig(cfg Config) doctor.Config {
	return doctor.Config{
		Base: cfg.Base, Environ: environ(), Now: time.Now, Disk: disk.Of, Carry: disk.CheckCarry, Proc: "/proc",
		Media: &disk.Usage{Folder: cfg.MediaDir(), Quota: cfg.MediaQuota, Now: time.Now},
		Daemons: doctor.Endpoints(map[string]config.URL{"routd": cfg.RoutdURL, "gated": cfg.GatedURL,
			"onbod": cfg.OnbodURL, name: cfg.URL}, environ()),
	}
}

// examineRows finds the problems that an open dashboard shows by itself.
func (d *dashd) examineRows(ctx context.Context) ([]facts.Fact, error) {
	cfg := doctorConfig(d.cfg)
	cfg.Now, cfg.Media = d.Now, d.media
	return doctor.Rows(ctx, cfg, d.Store.Reader)
}

// restart restarts a daemon for an operator.
func (d *dashd) restart(ctx context.Context, name string) error {
	return doctor.Restart(ctx, d.cfg.Base, name)
}
