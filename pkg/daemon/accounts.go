package daemon

import (
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// AccountsVariable lists the daemons of further accounts, as teled+work,slakd+home.
const AccountsVariable = "ACCOUNTS"

// fileSuffix ends the name of a variable that names a file with the value.
const fileSuffix = "_FILE"

// Account is the daemon of a further account of a platform, as ACCOUNTS names it. A variable with the suffix, such as
// TELEGRAM_BOT_TOKEN_WORK or TELEGRAM_BOT_TOKEN_WORK_FILE, is the one without it for this daemon.
type Account struct {
	Adapter
	Daemon  string   // "teled+work"
	Suffix  string   // "_WORK"
	Environ []string // of the daemon: without variables of other accounts
}

// Accounts returns the further accounts that an environment, in the form of os.Environ, names. Its error
// says which entry is wrong.
func Accounts(environ []string) (all []Account, err error) {
	suffixes := map[string]string{}
	for entry := range strings.SplitSeq(variable(environ, AccountsVariable), ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		a, err := newAccount(entry)
		if err != nil {
			return nil, err
		}
		if other := suffixes[a.Name+a.Suffix]; other != "" {
			return nil, fmt.Errorf("%s: %s and %s would have the same variables, with %s at their end",
				AccountsVariable, other, entry, a.Suffix)
		}
		suffixes[a.Name+a.Suffix] = entry
		all = append(all, a)
	}
	for i := range all {
		all[i].Environ = all[i].environ(environ, all)
	}
	return all, nil
}

// Environ is the environment of a daemon that is not of a further account, out of one in the form of os.Environ that
// serves several: without the secrets of adapters other than itself, and of further accounts. Two keep all: dashd
// examines them, and gated passes on to agents those that AGENT_ENV names.
func Environ(name string, environ []string) []string {
	if name == "dashd" || name == "gated" {
		return environ
	}
	own := adapterNamed(name).Secrets
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		variable, _, _ := strings.Cut(entry, "=")
		return isSecret(variable) && !slices.Contains(own, strings.TrimSuffix(variable, fileSuffix))
	})
}

// newAccount returns the account of an entry of ACCOUNTS, without its environment.
func newAccount(entry string) (a Account, err error) {
	name, account := msg.SplitAccount(entry)
	adapter := adapterNamed(name)
	if adapter.Name == "" || !msg.IsAccount(account) {
		return a, fmt.Errorf("%s: %.80q is not an adapter and the name of an account, as in teled+work: "+
			"want teled, discd or slakd, and at most 32 of a-z, 0-9, _ and -, beginning with a letter or digit",
			AccountsVariable, entry)
	}
	a = Account{Adapter: adapter, Daemon: entry,
		Suffix: "_" + strings.ToUpper(strings.ReplaceAll(account, "-", "_"))}
	if strings.HasSuffix(a.Suffix, fileSuffix) {
		return a, fmt.Errorf("%s: %s: an account must not be named file, or end with -file or _file, "+
			"since variables such as %s%s name files: choose another name",
			AccountsVariable, entry, a.Token, fileSuffix)
	}
	return a, nil
}

// environ is the environment of the account's daemon. It has no token of another account.
func (a *Account) environ(environ []string, all []Account) (own []string) {
	var suffixed []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !isSecret(name) && name != a.AddrVariable() && name != a.accountVariable() {
			own = append(own, entry)
		}
		stem, isFile := strings.CutSuffix(name, fileSuffix)
		base, ok := strings.CutSuffix(stem, a.Suffix)
		if !ok || base == "" || base != baseOf(stem, all) || isSecret(base) && !slices.Contains(a.Secrets, base) {
			continue
		}
		if isFile {
			base += fileSuffix
		}
		suffixed = append(suffixed, base+"="+value)
	}
	_, account := msg.SplitAccount(a.Daemon)
	return append(append(own, suffixed...), a.accountVariable()+"="+account)
}

// baseOf is a variable's name without the longest suffix of an account that it has: with accounts work and team-work,
// BOTS_TEAM_WORK is that of the latter.
func baseOf(name string, all []Account) string {
	base := name
	for _, other := range all {
		if cut := strings.TrimSuffix(name, other.Suffix); len(cut) < len(base) {
			base = cut
		}
	}
	return base
}

// isSecret reports whether a variable is a token or another secret of an adapter, of whichever account.
func isSecret(name string) bool {
	return slices.ContainsFunc(Adapters(), func(a Adapter) bool {
		return slices.ContainsFunc(a.Secrets, func(secret string) bool {
			return name == secret ||
				strings.HasPrefix(name, secret+"_")
		})
	})
}

// AddrVariable is the variable with the address that the adapter listens on.
func (a *Adapter) AddrVariable() string { return strings.ToUpper(a.Name) + "_ADDR" }

func (a *Adapter) accountVariable() string { return strings.ToUpper(a.Name) + "_ACCOUNT" }

// Variable returns the value of a variable of the account's daemon, "" if it is not set.
func (a *Account) Variable(name string) string { return variable(a.Environ, name) }

// variable is the value of a variable in an environment, "" if it is not set.
func variable(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// HasToken reports whether the daemon's token is set, by value or as a file.
func (a *Account) HasToken() bool {
	return a.Variable(a.Token) != "" || a.Variable(a.Token+fileSuffix) != ""
}
