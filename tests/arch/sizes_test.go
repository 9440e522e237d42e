// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"
)

// maxPackageLines is how long a package may be, with comments, without tests and generated files.
const maxPackageLines = 2000

// largePackages are the packages that are still longer, and how long they may be: split them, and lower the number.
var largePackages = map[string]int{
	"api/v1alpha1": 5000, // the kinds of one API version are one package
}

// TestPackageSizes keeps packages small enough to be read in one go.
func TestPackageSizes(t *testing.T) {
	lines := map[string]int{}
	for _, f := range sources(t, "*.go") {
		if f.isProduct() {
			lines[path.Dir(f.name)] += bytes.Count(f.content, []byte("\n"))
		}
	}
	if len(lines) < 50 {
		t.Fatalf("only %d packages were found", len(lines))
	}
	for _, violation := range tooLarge(lines) {
		t.Error(violation)
	}
}

// TestPackageSizesAreChecked checks the rule itself.
func TestPackageSizesAreChecked(t *testing.T) {
	lines := maps.Clone(largePackages)
	lines["internal/a"] = maxPackageLines
	if found := tooLarge(lines); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
	lines["internal/a"]++
	lines["api/v1alpha1"]++
	if found := tooLarge(lines); len(found) != 2 {
		t.Errorf("too long: got %v", found)
	}
	delete(lines, "internal/a")
	lines["api/v1alpha1"] = maxPackageLines
	if found := tooLarge(lines); len(found) != 1 {
		t.Errorf("an exception that is not needed: got %v", found)
	}
}

// tooLarge returns a message for each package with too many lines, and for each exception that is not needed any more.
func tooLarge(lines map[string]int) []string {
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		allowed := maxPackageLines
		if exception, large := largePackages[dir]; large {
			allowed = exception
		}
		if lines[dir] > allowed {
			found = append(found, fmt.Sprintf("%s has %d lines without tests, more than %d: split it by responsibility", dir, lines[dir], allowed))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(largePackages)) {
		if lines[dir] <= maxPackageLines {
			found = append(found, dir+" has no more than 2,000 lines: take it out of largePackages")
		}
	}
	return found
}
