package daemon

import (
	"os"

	"arizuko/pkg/config"
)

// sharedSecret returns the secret between the daemons, "" if it cannot be read.
func sharedSecret() string {
	base, err := config.Load[config.Base](os.Environ())
	if err != nil {
		return ""
	}
	secret, err := base.Secret()
	if err != nil {
		return ""
	}
	return secret
}
