package transcribe

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/groupconfig"
)

const (
	// maxFile bounds each file that the command writes, in bytes: a long recording, unpacked.
	maxFile = 1 << 30
	// maxFolder bounds its folder and its temporary folder together, in bytes.
	maxFolder = 2 << 30
	// maxTasks is how many processes and threads a command may start.
	maxTasks = 256
)

// bounds of a command: bytes in a file and in all, and tasks.
type bounds struct{ file, folder, tasks int64 }

// script sets limits that no child of the command can raise, and runs it.
func (j *job) script(user runtime.User) (string, error) {
	uid := user.UID
	if user.IsZero() {
		uid = os.Getuid()
	}
	running, err := runtime.CountTasks(uid)
	if err != nil {
		return "", err
	}
	processors := j.settings.Limits.CPUs
	if processors <= 0 {
		processors = float64(goruntime.NumCPU())
	}
	seconds := int64(math.Ceil(j.settings.Timeouts.ForTranscripts().Seconds() * max(processors, 1)))
	memory := "true"
	if bytes := int64(j.settings.Limits.Memory); bytes > 0 {
		memory = fmt.Sprintf("limit -v %d", bytes>>10)
	}
	command := strings.ReplaceAll(j.settings.Transcribe, groupconfig.FilePlaceholder, "./"+j.fileName())
	return fmt.Sprintf(limited, seconds, j.w.bounds.file/512, memory, running+int(j.w.bounds.tasks), output, command), nil
}

// limited is the script: seconds of processor, blocks of 512 bytes in a file, memory, processes, output, command. A
// limit that is lower already stays. Shells name the limit of processes differently.
const limited = `limit() {
	ulimit "$1" "$2" 2>/dev/null || { hard=$(ulimit -H "$1" 2>/dev/null) && [ "$hard" -le "$2" ] 2>/dev/null; }
}
limit -c 0 && limit -t %d && limit -f %d && %s && { limit -u %[4]d || limit -p %[4]d; } || { echo "the limits of the command cannot be set" >&2; exit 126; }
exec </dev/null >%[5]s || exit 126
%[6]s
`

// fileOverhead is the space of a file or folder beside its content, in bytes.
const fileOverhead = 4 << 10

// size is how many bytes folders take, about. Files that cannot be read, or go meanwhile, are left out.
func size(folders ...string) (bytes int64) {
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, _ error) error {
			bytes += fileOverhead
			if entry != nil && entry.Type().IsRegular() {
				if info, err := entry.Info(); err == nil {
					bytes += info.Size()
				}
			}
			return nil
		})
	}
	return bytes
}
