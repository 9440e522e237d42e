// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

const mebibyte = 1 << 20

// Options limit the resources of workers.
type Options struct {
	// Workers is how many jobs run at once.
	Workers int
	// Spare keeps processes in 96 MiB of memory beside that of Workers, which hides the time of their start: one
	// for the next namespace, and small ones that have served a namespace.
	Spare bool

	// CPU time of one job. The kernel counts in whole seconds.
	CPU time.Duration
	// Memory of one process, in bytes of mapped private memory (RLIMIT_DATA). The limit
	// of the garbage collector is 13/16 of it.
	Memory int64
	// Output is the maximal size of a job's result, in bytes.
	Output int64
	// Wall is how long a job may run.
	Wall time.Duration

	// NamespaceCPU is the CPU time that one namespace has in NamespaceWindow; 0 is no bound.
	// It is refilled evenly.
	NamespaceCPU, NamespaceWindow time.Duration

	// Metrics may be nil.
	Metrics *Metrics
}

// DefaultOptions are those of the controllers.
func DefaultOptions() Options {
	return Options{
		Workers: 2, Spare: true,
		CPU: 20 * time.Second, Memory: 512 * mebibyte, Output: 64 * mebibyte, Wall: 5 * time.Minute,
		NamespaceCPU: time.Minute, NamespaceWindow: 10 * time.Minute,
	}
}

// BindFlags adds a flag for each option; the current values are the defaults.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.Workers, "workers", o.Workers,
		"How many worker processes convert bundles at once. One more is kept started for the next namespace.")
	fs.DurationVar(&o.CPU, "worker-cpu", o.CPU, "How much CPU time one conversion may take.")
	fs.Var((*mebibytes)(&o.Memory), "worker-memory-mib",
		"How many MiB of memory one worker process may map. The memory limit of the container has to hold --workers times this.")
	fs.Var((*mebibytes)(&o.Output), "worker-output-mib", "How many MiB one conversion may return.")
	fs.DurationVar(&o.Wall, "worker-timeout", o.Wall, "How long one conversion may take.")
	fs.DurationVar(&o.NamespaceCPU, "worker-namespace-cpu", o.NamespaceCPU,
		"How much CPU time the conversions of one namespace may take in --worker-namespace-window. 0 is no bound.")
	fs.DurationVar(&o.NamespaceWindow, "worker-namespace-window", o.NamespaceWindow, "See --worker-namespace-cpu.")
}

// mebibytes is a flag for a number of bytes.
type mebibytes int64

func (m *mebibytes) String() string { return strconv.FormatInt(int64(*m)/mebibyte, 10) }
func (m *mebibytes) Type() string   { return "int" }

func (m *mebibytes) Set(value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	*m = mebibytes(n * mebibyte)
	return err
}

// validate refuses unusable options.
func (o *Options) validate() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("worker processes: %d is not enough, at least 1 is needed (--workers)", o.Workers)
	case o.CPU < time.Second:
		return fmt.Errorf("worker processes: a CPU limit of %s is too low, at least 1s is needed (--worker-cpu)", o.CPU)
	case o.Memory < minMemory:
		return fmt.Errorf("worker processes: %s of memory is too low, at least %s are needed (--worker-memory-mib)", inMebibytes(o.Memory), inMebibytes(minMemory))
	case o.Output < 1 || o.Output > maxOutput:
		return fmt.Errorf("worker processes: an output limit of %s is not within 1 MiB and %s (--worker-output-mib)", inMebibytes(o.Output), inMebibytes(maxOutput))
	case o.Wall <= 0:
		return fmt.Errorf("worker processes: a time limit of %s is not positive (--worker-timeout)", o.Wall)
	case o.NamespaceCPU < 0 || o.NamespaceCPU > 0 && o.NamespaceWindow < o.NamespaceCPU:
		return fmt.Errorf("worker processes: %s of CPU time for a namespace in %s: want a positive time in a longer window (--worker-namespace-cpu, --worker-namespace-window)",
			o.NamespaceCPU, o.NamespaceWindow)
	}
	return nil
}

// Bounds of Options. A fresh worker maps about 80 MiB before its first job.
const (
	minMemory = 128 * mebibyte
	maxOutput = 1 << 30
)

func inMebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }
