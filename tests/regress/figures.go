// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// run holds the figures of one run of benchmarks.
type run struct {
	// OS, Architecture, CPU and Cores are the class of the machine: figures of different classes are not compared.
	OS           string    `json:"os"`
	Architecture string    `json:"architecture"`
	CPU          string    `json:"cpu"`
	Cores        int       `json:"cores"`
	Commit       string    `json:"commit,omitempty"`
	Time         time.Time `json:"time"`
	Figures      []figure  `json:"figures"`
}

// figure is what a benchmark measured in one unit, once for each repetition.
type figure struct {
	Package   string    `json:"package"`
	Benchmark string    `json:"benchmark"`
	Unit      string    `json:"unit"`
	Values    []float64 `json:"values"`
}

// key identifies a figure in all runs.
func (f figure) key() string { return f.Package + " " + f.Benchmark + " " + f.Unit }

// read reads the output of `go test -bench`.
func read(in io.Reader) (run, error) {
	var r run
	places := map[string]int{}
	reader := benchfmt.NewReader(in, "standard input")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // other output of tests
		}
		r.OS, r.Architecture, r.CPU = result.GetConfig("goos"), result.GetConfig("goarch"), result.GetConfig("cpu")
		for _, value := range result.Values {
			f := figure{Package: result.GetConfig("pkg"), Benchmark: string(result.Name), Unit: value.Unit}
			place, known := places[f.key()]
			if !known {
				place = len(r.Figures)
				places[f.key()] = place
				r.Figures = append(r.Figures, f)
			}
			r.Figures[place].Values = append(r.Figures[place].Values, value.Value)
		}
	}
	if err := reader.Err(); err != nil {
		return r, fmt.Errorf("reading the output of the benchmarks: %w", err)
	}
	if len(r.Figures) == 0 {
		return r, errors.New("no benchmark ran: see the output above")
	}
	return r, nil
}

var unusual = regexp.MustCompile(`[^a-z0-9]+`)

// class names the class of the machine, for a folder.
func (r run) class() string {
	words := fmt.Sprintf("%s %s %d cores %s", r.OS, r.Architecture, r.Cores, r.CPU)
	return strings.Trim(unusual.ReplaceAllString(strings.ToLower(words), "-"), "-")
}

// machine names the class of the machine, for people.
func (r run) machine() string {
	return fmt.Sprintf("%s/%s with %d cores (%s)", r.OS, r.Architecture, r.Cores, cmp.Or(strings.TrimSpace(r.CPU), "unknown CPU"))
}

func (r run) commit() string { return cmp.Or(r.Commit, "unknown commit") }

// store writes the figures as JSON.
func (r run) store(file string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// load reads stored figures; nil when there are none.
func load(file string) (*run, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r run
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w: delete the file to begin a new baseline", file, err)
	}
	return &r, nil
}
