// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"
)

// The converter names fields of a BundleDeployment in its remedies. Users of a command give flags instead.
var fieldsAsFlags = strings.NewReplacer(
	"spec.format", "--format",
	"spec.path", "--path",
	"spec.installNamespace", "--install-namespace",
	"set registryV1.certificateProvider to", "choose with --certificate-provider",
	"choose another registryV1.certificateProvider", "choose another --certificate-provider",
	"registryV1.includeCustomResources keeps it", "includeCustomResources in the file of --config keeps it",
	"spec.helm.values", "--values or --set",
	"spec.helm.releaseName", "--release-name",
	"correct spec.registryV1.deploymentConfig", "correct deploymentConfig in the file of --config",
	"leave watchNamespaces empty", "leave --watch-namespace out",
	"correct watchNamespaces", "correct --watch-namespace",
	"in watchNamespaces", "with --watch-namespace",
)

// formatChoice is what the converter says where a format has to be chosen.
var (
	formatChoice = regexp.MustCompile(`set spec\.format to (?:"[^" ]+"(?:, | or )?)+`)
	quotedFormat = regexp.MustCompile(`"([^" ]+)"`)
)

// flagsFor is a remedy that names flags instead of fields.
func flagsFor(remedy string) string {
	remedy = formatChoice.ReplaceAllStringFunc(remedy, func(choice string) string {
		return quotedFormat.ReplaceAllString(strings.Replace(choice, "set spec.format to", "choose with", 1), "--format $1")
	})
	return fieldsAsFlags.Replace(remedy)
}

// inFlags is the same for warnings of the converter.
func inFlags(warnings []string) []string {
	said := make([]string, 0, len(warnings))
	for _, w := range warnings {
		said = append(said, flagsFor(w))
	}
	return said
}
