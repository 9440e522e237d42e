// SPDX-License-Identifier: Apache-2.0

package tagversion

import (
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

func TestFluxF29Tags(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, tag, text, version string // version is empty for what is none
	}{
		"Plain":     {"as it is", "1.2.3", "1.2.3", "1.2.3"},
		"V":         {"the v stays", "v1.2.3", "v1.2.3", "1.2.3"},
		"Metadata":  {"as helm push writes it", "1.2.3_build.7", "1.2.3+build.7", "1.2.3+build.7"},
		"Both":      {"a prerelease with metadata", "v1.3.0-rc.1_up5", "v1.3.0-rc.1+up5", "1.3.0-rc.1+up5"},
		"Digits":    {"metadata of digits", "1.2.3_20260131", "1.2.3+20260131", "1.2.3+20260131"},
		"Zeros":     {"metadata may have leading zeros", "1.2.3_001", "1.2.3+001", "1.2.3+001"},
		"Rancher":   {"as Rancher tags charts", "104.1.0_up5.2.0-rc.1", "104.1.0+up5.2.0-rc.1", "104.1.0+up5.2.0-rc.1"},
		"Twice":     {"a version has one plus sign", "1.2.3_build_7", "1.2.3_build_7", ""},
		"Empty":     {"metadata are not empty", "1.2.3_", "1.2.3_", ""},
		"Short":     {"a name that moves", "1.2_build.7", "1.2_build.7", ""},
		"Name":      {"an ordinary tag", "release_candidate", "release_candidate", ""},
		"Platform":  {"reads as metadata, for Helm too", "1.2.3_linux-amd64", "1.2.3+linux-amd64", "1.2.3+linux-amd64"},
		"Prefix":    {"another tag", "app_1.2.3", "app_1.2.3", ""},
		"Capital":   {"only a small v", "V1.2.3", "V1.2.3", ""},
		"Long":      {"no tag is so long", "1.2.3_" + strings.Repeat("a", 128), "1.2.3_" + strings.Repeat("a", 128), ""},
		"Signature": {"a tag of cosign", "sha256-aa.sig", "sha256-aa.sig", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, is := Parse(tc.tag)
			if is != (tc.version != "") || is && version.String() != tc.version || Text(tc.tag) != tc.text {
				t.Errorf("%s: %v, %v, %q", tc.reason, version, is, Text(tc.tag))
			}
			if is && Tag(Text(tc.tag)) != tc.tag {
				t.Errorf("%s: back to %q", tc.reason, Tag(Text(tc.tag)))
			}
		})
	}
}

func TestFluxF29Compare(t *testing.T) {
	t.Parallel()
	ordered := []string{"1.2.2_z", "1.2.3-rc.1_up5", "1.2.3", "1.2.3_7", "1.2.3_10", "1.2.3_build", "1.2.3_build.7", "1.2.3_build.10", "1.2.4-0"}
	parsed := make([]*semver.Version, 0, len(ordered))
	for _, tag := range ordered {
		version, _ := Parse(tag)
		parsed = append(parsed, version)
	}
	if !slices.IsSortedFunc(parsed, Compare) || Compare(parsed[3], parsed[4]) >= 0 || Compare(parsed[6], parsed[7]) >= 0 {
		t.Errorf("the order is %v", parsed)
	}
}

func TestFluxF29Hint(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]string{
		"reg:5000/charts/buoy:1.2.3+build.7":                   "; in a tag the + of a version is written _: 1.2.3_build.7",
		"reg:5000/charts/buoy":                                 "",
		"reg/charts/buoy:1.2.3":                                "",
		"reg/charts/buoy:a+b":                                  "",
		"reg/charts/buoy:1.2.3+" + strings.Repeat("a", maxTag): "",
	} {
		if got := Hint(reference); got != want {
			t.Errorf("%s: %q", reference, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tag := range []string{"1.2.3_build.7", "v1.2.3", "1.2.3-rc.1_up5", "1.2.3_build_7", "_"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		version, is := Parse(tag)
		if is && (Compare(version, version) != 0 || Tag(Text(tag)) != Tag(tag)) {
			t.Errorf("%q", tag)
		}
		if !is && Text(tag) != tag {
			t.Errorf("%q became %q", tag, Text(tag))
		}
	})
}
