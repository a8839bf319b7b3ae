package runtime

import (
	"os"
	"strconv"
	"syscall"
)

// CountTasks is how many processes and threads a user has now. Those that end meanwhile may be left out.
func CountTasks(uid int) (count int, err error) {
	pids, err := processes()
	for _, pid := range pids {
		var owner syscall.Stat_t
		dir := "/proc/" + strconv.Itoa(pid)
		if syscall.Stat(dir, &owner) != nil || int(owner.Uid) != uid {
			continue
		}
		tasks, err := os.ReadDir(dir + "/task")
		if err == nil {
			count += len(tasks)
		}
	}
	return count, err
}
