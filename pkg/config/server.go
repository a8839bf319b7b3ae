package config

import (
	"net/url"
	"strings"
)

// Server is the URL of a database on a Postgres server, as in postgres://user:password@host/database.
type Server string

// wanted describes a valid value. It quotes nothing of the value, so that it may be shown for a secret one.
type wanted string

func (w wanted) Error() string { return string(w) }

const wantedServer wanted = "want postgres://user:password@host/database; in the password, write %40 for @, " +
	"%2F for / and so on"

// UnmarshalText returns an error for a text that is no URL of a Postgres database.
func (s *Server) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return wantedServer
	}
	if strings.Trim(u.Path, "/") == "" {
		return wanted("names no database: " + string(wantedServer))
	}
	*s = Server(text)
	return nil
}

// Secrets are the URL, and the password in it.
func (s Server) Secrets() (values []string) {
	if s == "" {
		return nil
	}
	values = []string{string(s)}
	u, err := url.Parse(string(s))
	if err != nil {
		return values
	}
	if password, set := u.User.Password(); set {
		values = append(values, password)
	}
	if password := u.Query().Get("password"); password != "" {
		values = append(values, password)
	}
	return values
}
