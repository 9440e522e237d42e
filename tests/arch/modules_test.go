// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goMod is what `go mod edit -json` prints.
type goMod struct {
	Require []requirement
	Replace []struct{ Old, New requirement }
}

// requirement is a module at a version.
type requirement struct{ Path, Version string }

func TestDependencyFloors(t *testing.T) {
	for _, file := range []string{"go.mod", "migrate/go.mod", "tests/cluster/go.mod", "tests/kustomizer/module/go.mod", "tools/go.mod"} {
		var mod goMod
		if err := json.Unmarshal(run(t, "go", "mod", "edit", "-json", file), &mod); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, replaced := range mod.Replace {
			if replaced.New.Version == "" && replaced.Old.Path != module {
				t.Errorf("%s replaces %s by the folder %s: others cannot build that; require a version", file, replaced.Old.Path, replaced.New.Path)
			}
		}
		if strings.HasPrefix(file, "t") {
			continue // those of tests and tools are not part of the product, and k8s.io/kubernetes chooses for them
		}
		for _, violation := range belowFloor(mod.Require, dependencyFloors) {
			t.Error(violation)
		}
	}
}

// TestModulesRequireTheSame wants the modules of the product to require each dependency at the same version.
//
// Why: the plugin is built from the packages of the core, which were tested with the versions of the core.
// Remedy: `go get MODULE@VERSION` in the folder of the plugin, with the version of the core's go.mod.
func TestModulesRequireTheSame(t *testing.T) {
	versions := map[string]string{}
	for _, folder := range modules {
		var mod goMod
		if err := json.Unmarshal(runIn(t, folder, "go", "mod", "edit", "-json"), &mod); err != nil {
			t.Fatal(err)
		}
		for _, r := range mod.Require {
			if version, other := versions[r.Path]; other && version != r.Version {
				t.Errorf("%s/go.mod requires %s %s, go.mod %s: require the same version", folder, r.Path, r.Version, version)
			}
			versions[r.Path] = r.Version
		}
	}
}

// belowFloor returns a message for each module that is older than it may be.
func belowFloor(required []requirement, floors map[string]string) []string {
	var found []string
	for _, r := range required {
		floor, ok := floors[r.Path]
		if ok && older(r.Version, floor) {
			found = append(found, fmt.Sprintf("go.mod requires %s %s, which has known vulnerabilities: raise it to %s or later",
				r.Path, r.Version, floor))
		}
	}
	return found
}

// older compares two versions of a module, v1.2.3 or v1.2.3-pre; a pre-release is older than its release.
func older(a, b string) bool {
	coreA, preA, _ := strings.Cut(strings.TrimPrefix(a, "v"), "-")
	coreB, preB, _ := strings.Cut(strings.TrimPrefix(b, "v"), "-")
	if order := slices.Compare(numbers(coreA), numbers(coreB)); order != 0 {
		return order < 0
	}
	return preA != "" && preB == ""
}

// numbers splits 1.2.3+incompatible into its numbers.
func numbers(core string) []int {
	core, _, _ = strings.Cut(core, "+")
	var n []int
	for part := range strings.SplitSeq(core, ".") {
		i, err := strconv.Atoi(part)
		if err != nil {
			return nil // older than anything, so that it is looked at
		}
		n = append(n, i)
	}
	return n
}

// TestDependencyFloorsBite puts each module just below its floor and wants it found.
func TestDependencyFloorsBite(t *testing.T) {
	for _, module := range slices.Sorted(maps.Keys(dependencyFloors)) {
		floor := dependencyFloors[module]
		cases := map[string]bool{
			floor: false, floor + "-0.20200101000000-abcdefabcdef": true, "v0.0.1": true, "v99.0.0": false, "nonsense": true,
		}
		for version, want := range cases {
			found := belowFloor([]requirement{{module, version}}, dependencyFloors)
			if (len(found) == 1) != want {
				t.Errorf("%s at %s: got %q, want a message: %t", module, version, found, want)
			}
		}
	}
}
