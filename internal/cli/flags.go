// SPDX-License-Identifier: Apache-2.0

package cli

import "strings"

// The converter names fields of a BundleDeployment where something has to be chosen. Who runs a command gives flags.
var fieldsAsFlags = strings.NewReplacer(
	`set spec.format to "registry+v1", "plain+v0" or "kustomize"`, `choose with --format registry+v1, --format plain+v0 or --format kustomize`,
	"spec.path", "--path",
	"spec.installNamespace", "--install-namespace",
	"set registryV1.certificateProvider to", "choose with --certificate-provider",
	"choose another registryV1.certificateProvider", "choose another --certificate-provider",
	"registryV1.includeCustomResources keeps it", "includeCustomResources in the file of --config keeps it",
	"leave watchNamespaces empty", "leave --watch-namespace out",
	"correct watchNamespaces", "correct --watch-namespace",
	"in watchNamespaces", "with --watch-namespace",
)

// flagsFor is what to do in the words of the command line.
func flagsFor(remedy string) string { return fieldsAsFlags.Replace(remedy) }

// inFlags is the same for warnings of the converter.
func inFlags(warnings []string) []string {
	said := make([]string, 0, len(warnings))
	for _, w := range warnings {
		said = append(said, flagsFor(w))
	}
	return said
}
