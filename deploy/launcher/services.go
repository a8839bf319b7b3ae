package main

import (
	"fmt"
	"os"
	"path/filepath"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// service is a daemon as the launcher sees it.
type service struct {
	name string
	// rank is the order of stopping: the highest rank first, equal ranks together.
	rank int
	// ready is the address of an essential daemon, which must be ready before arizuko is; "" for
	// others.
	ready config.Addr
	// token is the variable that the daemon needs to start, "" if there is none.
	token string
}

func (s service) essential() bool { return s.ready != "" }

// services are all daemons in the order of their start. A daemon that writes rows for another one is
// stopped before it.
func services(cfg Config) []service {
	return []service{
		{name: "routd", rank: 1, ready: cfg.RoutdAddr},
		{name: "gated", rank: 2, ready: cfg.GatedAddr},
		{name: "onbod", rank: 3},
		{name: "dashd", rank: 3, ready: cfg.DashdAddr},
		{name: "teled", rank: 3, token: "TELEGRAM_BOT_TOKEN"},
		{name: "discd", rank: 3, token: "DISCORD_BOT_TOKEN"},
		{name: "slakd", rank: 3, token: "SLACK_BOT_TOKEN"},
	}
}

// choose splits all into those to start and one line for each that is skipped. A program without a
// token may be missing, and is skipped silently; a missing essential one is an error.
func choose(all []service, bin string, isSet func(string) bool) (start []service, skipped []string, err error) {
	for _, s := range all {
		path := filepath.Join(bin, s.name)
		_, missing := os.Stat(path)
		switch {
		case s.token != "" && !isSet(s.token):
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is not set", s.name, s.token))
		case missing == nil:
			start = append(start, s)
		case s.essential():
			return nil, nil, &daemon.ExitError{Code: daemon.ExitFailure, Err: fmt.Errorf("no program at %s: build it first", path)}
		case s.token != "":
			skipped = append(skipped, fmt.Sprintf("%s: not started, %s is set but there is no program at %s", s.name, s.token, path))
		}
	}
	return start, skipped, nil
}
