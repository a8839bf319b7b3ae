package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"arizuko/migrations/backup"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/store"
)

// Config is dashd's environment.
type Config struct {
	config.Base
	Addr          config.Addr     `env:"DASHD_ADDR" envDefault:"127.0.0.1:8083" doc:"where it listens"`
	HooksAddr     config.Addr     `env:"HOOKS_ADDR" doc:"where it takes deliveries of hooks and nothing else, as in 0.0.0.0:8087, besides DASHD_ADDR; default: nowhere else"`
	URL           config.URL      `env:"DASHD_URL" doc:"where the status and login commands find it; default: its socket in the data folder"`
	PublicURL     config.URL      `env:"DASH_PUBLIC_URL" doc:"where browsers find it, for links and cookies; requests to its host are answered; default: DASHD_ADDR"`
	PrintLink     bool            `env:"DASH_PRINT_LINK" envDefault:"true" doc:"whether the address to log in at is printed at start; the launcher sets it to false and prints it itself"`
	Proxies       config.Networks `env:"TRUSTED_PROXIES" doc:"addresses and networks of proxies, as in 127.0.0.1,10.0.0.0/8: only their X-Forwarded-For and X-Forwarded-Proto count"`
	RoutdURL      config.URL      `env:"ROUTD_URL" doc:"where routd is called; default: its socket in the data folder"`
	GatedURL      config.URL      `env:"GATED_URL" doc:"where gated is called; default: its socket in the data folder"`
	OnbodURL      config.URL      `env:"ONBOD_URL" doc:"where onbod is called; default: its socket in the data folder"`
	Operators     []string        `env:"OPERATORS" doc:"senders that may approve chats, as telegram:123,slack:U0AB: the same as gated's, shown in the first steps"`
	Password      string          `env:"DASH_PASSWORD" secret:"true" doc:"logs in to the dashboard, with at least 8 characters, 12 where other machines reach dashd; without one there are one-time links, the first printed at start"`
	AssistantName string          `env:"ASSISTANT_NAME" envDefault:"arizuko" doc:"name of agents before their first message; the same as gated's"`
	PushContact   string          `env:"PUSH_CONTACT" doc:"how the operators of push services reach you, as mailto:you@example.org or an https URL; without one there are no notifications; default: DASH_PUBLIC_URL if it has https"`
	Accounts      string          `env:"ACCOUNTS" doc:"daemons of further accounts that run with variables of this environment, as teled+work,slakd+home: the launcher starts them, and doctor examines them. A variable with _WORK at its end, as TELEGRAM_BOT_TOKEN_WORK, is the one without it for teled+work"`
	PollInterval  time.Duration   `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often the database is polled without a poke"`
	MediaMax      int64           `env:"MEDIA_MAX" envDefault:"20971520" doc:"largest file of a message, in bytes"`
	MediaQuota    int64           `env:"MEDIA_QUOTA" envDefault:"2147483648" doc:"what all files of messages may take on the disk, in bytes: gated removes the oldest that no open turn needs"`
	MediaDaily    int64           `env:"MEDIA_DAILY" envDefault:"209715200" doc:"files of one chat that may be stored in a day, received and sent, in bytes"`
	Alerts        string          `env:"ALERTS" envDefault:"on" doc:"on, or off: no operator gets messages about problems"`
	AlertQuiet    string          `env:"ALERT_QUIET" doc:"when operators get no messages about problems, by TZ, as in 22:00-07:00; what still lasts follows afterwards"`
	HeartbeatURL  string          `env:"HEARTBEAT_URL" secret:"true" doc:"a URL that is called once a minute while no problem is open, such as that of a push monitor of Uptime Kuma or a check of healthchecks.io"`
}

var hours = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$`)

// Validate checks the settings that the types cannot check.
func (c *Config) Validate() []error {
	_, err := daemon.Accounts([]string{daemon.AccountsVariable + "=" + c.Accounts})
	errs := []error{config.CheckInterval("POLL_INTERVAL", c.PollInterval), err}
	errs = append(errs, c.checkPassword(), c.checkPublicURL(), c.checkContact())
	if c.Alerts != "on" && c.Alerts != "off" {
		errs = append(errs, errors.New("ALERTS: want on or off"))
	}
	if c.AlertQuiet != "" && !hours.MatchString(c.AlertQuiet) {
		errs = append(errs, errors.New("ALERT_QUIET: want two times of a day, as in 22:00-07:00"))
	}
	if u, err := url.Parse(c.HeartbeatURL); err != nil || c.HeartbeatURL != "" && !strings.HasPrefix(u.Scheme, "http") {
		errs = append(errs, errors.New("HEARTBEAT_URL: want http:// or https:// and a host"))
	}
	for name, size := range map[string]int64{"MEDIA_MAX": c.MediaMax, "MEDIA_QUOTA": c.MediaQuota,
		"MEDIA_DAILY": c.MediaDaily} {
		if size <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be above 0", name))
		}
	}
	return errs
}

// checkPublicURL refuses a path: the addresses on the pages begin at the root of a host.
func (c *Config) checkPublicURL() error {
	if u, err := url.Parse(string(c.PublicURL)); err == nil && strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("DASH_PUBLIC_URL: has the path %s, but the dashboard works only at the root of a host: "+
			"give it a host name of its own, as %s://dash.%s", u.Path, u.Scheme, u.Host)
	}
	return nil
}

// checkContact refuses what push services don't accept.
func (c *Config) checkContact() error {
	u, err := url.Parse(c.PushContact)
	if c.PushContact == "" || err == nil && (u.Scheme == "https" && u.Host != "" ||
		u.Scheme == "mailto" && strings.Contains(u.Opaque, "@")) {
		return nil
	}
	return errors.New("PUSH_CONTACT: must be as mailto:you@example.org or https://example.org")
}

// pushContact is "" if there are no notifications.
func (c *Config) pushContact() string {
	if public := string(c.PublicURL); c.PushContact == "" && strings.HasPrefix(public, "https://") {
		return public
	}
	return c.PushContact
}

const (
	// minPassword is the length of the dashboard's password, in characters. Dashd compares 500 attempts a second at
	// most: for 8 random letters and digits that takes thousands of years.
	minPassword = 8
	// minOpenPassword is that where other machines may try.
	minOpenPassword = 12
	// minDifferent is how many characters of a password have to differ.
	minDifferent = 5
)

// trivialPasswords are long enough, and the first that are tried.
var trivialPasswords = []string{
	"password", "password1", "password123", "passw0rd", "12345678", "123456789", "1234567890", "123456789012",
	"qwertyui", "qwertyuiop", "qwerty123", "iloveyou", "changeme", "changeme123", "letmein1", "letmein123",
	"adminadmin", "admin123", "administrator", "abcdefgh", "dashboard", "welcome1",
}

// checkPassword refuses a password that is guessed in a few attempts.
func (c *Config) checkPassword() error {
	if c.Password == "" {
		return nil
	}
	least, why := minPassword, ""
	if !c.loopback() {
		least, why = minOpenPassword, ", as other machines can reach dashd"
	}
	different := map[rune]bool{}
	for _, r := range c.Password {
		if !unicode.IsSpace(r) {
			different[r] = true
		}
	}
	switch {
	case utf8.RuneCountInString(strings.TrimSpace(c.Password)) < least:
		return fmt.Errorf("DASH_PASSWORD: must have at least %d characters%s", least, why)
	case len(different) < minDifferent, slices.Contains(trivialPasswords,
		strings.ToLower(strings.TrimSpace(c.Password))):
		return errors.New("DASH_PASSWORD: is one of the first that are tried: choose another one, " +
			"as `openssl rand -hex 12` prints it")
	}
	return nil
}

// loopback reports whether only users of this machine reach dashd.
func (c *Config) loopback() bool {
	host, _, err := net.SplitHostPort(string(c.Addr))
	if err != nil {
		return true // an invalid address is its own problem
	}
	addr, err := netip.ParseAddr(host)
	return (host == "localhost" || err == nil && addr.Unmap().IsLoopback()) && c.PublicURL == ""
}

func loadConfig() (Config, error) { return config.Load[Config](environ()) }

func environ() []string { return os.Environ() }

// place is ARIZUKO_DATA and ARIZUKO_DB: backup and restore need nothing else of the environment.
func place() (backup.Place, error) {
	cfg, err := config.Load[config.Base](os.Environ())
	return backup.Place{Data: cfg.Data, Server: string(cfg.DB)}, err
}

// paths are where the instance keeps its data.
func paths(cfg *Config) []config.Shown {
	return []config.Shown{
		{Name: "Database", Value: store.Name(cfg.Database())}, {Name: "Groups", Value: cfg.GroupsDir()},
		{Name: "Media", Value: cfg.MediaDir()}, {Name: "Logs", Value: cfg.LogsDir()},
		{Name: "Sockets", Value: cfg.RunDir()},
	}
}
