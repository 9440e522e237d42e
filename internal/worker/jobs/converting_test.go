// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// Environment variables of the process of convertForEver: the folder of its temporary files, and the number of conversions;
// none: without end.
const (
	convertingIn   = "SATCHEL_TEST_CONVERTING_IN"
	convertingOnly = "SATCHEL_TEST_CONVERTING_ONLY"
)

// convertForEver is a process that converts a chart for two namespaces at once, as a controller does, and writes a line for each
// conversion. When its standard input ends or has a byte, it begins a conversion that never ends as well. A worker that is killed costs a retry at most; any other failure, or another result, ends the process.
func convertForEver(dir string) int {
	pool, err := worker.New(worker.Options{Workers: 2, Spare: true, CPU: 20 * time.Second, Memory: 256 << 20, Output: 16 << 20, Wall: time.Minute})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	only, _ := strconv.Atoi(os.Getenv(convertingOnly))
	chart := fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")},
		"templates/a.yaml": {Data: []byte("{{ range until 100 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-{{ . }}}\n" +
			"data: {a: {{ . | quote }}}\n{{ end }}")},
	}
	bomb := fstest.MapFS{"Chart.yaml": chart["Chart.yaml"], "templates/a.yaml": {Data: []byte("{{ range 2000000000 }}{{ end }}")}}
	go func() { // a worker that is busy does not notice by itself that this process has ended
		_, _ = os.Stdin.Read(make([]byte, 1))
		_ = convertOnce(pool, dir, "attacker", bomb)
	}()
	content := make(chan string)
	for _, namespace := range []string{"a", "b"} {
		go func() {
			for {
				content <- convertOnce(pool, dir, namespace, chart)
			}
		}()
	}
	for n := 1; only == 0 || n <= only; n++ {
		got := <-content
		fmt.Println(got)
		if got != "converted" {
			return 1
		}
	}
	return 0
}

// convertOnce returns "converted", or the problem.
func convertOnce(pool *worker.Pool, dir, namespace string, chart fs.FS) string {
	write, read, err := packed.Temporary(dir, "converting-")
	if err != nil {
		return err.Error()
	}
	defer read.Close() //nolint:errcheck // it is only read from
	index, err := packed.Pack(context.Background(), chart, write, packed.Limits{Bytes: 1 << 20, FileBytes: 1 << 20, Entries: 100})
	if err = errors.Join(err, write.Close()); err != nil {
		return err.Error()
	}
	converted, err := jobs.Convert(context.Background(), pool, namespace, jobs.Conversion{
		Files: jobs.Files{File: read, Index: index}, Options: convert.Options{Format: convert.Helm, InstallNamespace: namespace},
	})
	var limit *worker.LimitError
	var crashed *worker.CrashError
	switch {
	case errors.As(err, &limit) && limit.Limit == worker.LimitMemory, errors.As(err, &crashed):
		return "converted" // the retry was killed as well, and counts as the end of the job
	case errors.Is(err, worker.ErrUnavailable):
		return "converted" // killed while it started
	case err != nil:
		return err.Error()
	}
	result, err := converted.Result()
	if err != nil || len(result.Objects) != 100 {
		return fmt.Sprintf("%d objects, %v", len(result.Objects), err)
	}
	return "converted"
}
