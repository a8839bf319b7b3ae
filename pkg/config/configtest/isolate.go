package configtest

import (
	"os"
	"strings"

	"arizuko/pkg/config"
)

// nowhere is an address at which nothing listens.
const nowhere = "127.0.0.1:1"

// Isolate keeps the tests of a package from an instance that runs beside them: the variables of a configuration are
// unset, and those of addresses name one at which nothing listens. It is called in TestMain.
func Isolate[T any](cfg T) {
	for _, setting := range config.Show(cfg) {
		_ = os.Unsetenv(setting.Name)
		_ = os.Unsetenv(setting.Name + "_FILE")
		if strings.HasSuffix(setting.Name, "_ADDR") {
			_ = os.Setenv(setting.Name, nowhere)
		}
	}
}
