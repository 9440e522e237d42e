// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// The converter names fields of a BundleDeployment in its remedies. Users of a command give flags instead.
var fieldsAsFlags = strings.NewReplacer(
	"spec.format", "--format",
	"spec.path", "--path",
	"spec.target.namespace", "--install-namespace",
	"set registryV1.certificateProvider to", "choose with --certificate-provider",
	"choose another registryV1.certificateProvider", "choose another --certificate-provider",
	"set registryV1.duplicateKeys to", "set duplicateKeys in the file of --config to",
	"set registryV1.requirements to", "set requirements in the file of --config to",
	"registryV1.includeCustomResources keeps it", "includeCustomResources in the file of --config keeps it",
	"spec.helm.values", "--values or --set",
	"spec.helm.releaseName", "--release-name",
	"set spec.helm.schemaValidation to Warn or None", "use --schema-validation Warn or None",
	"spec.helm.schemaValidation", "--schema-validation",
	"correct spec.registryV1.deploymentConfig", "correct deploymentConfig in the file of --config",
	"leave watchNamespaces empty", "leave --watch-namespace out",
	"correct watchNamespaces", "correct --watch-namespace",
	"in watchNamespaces", "with --watch-namespace",
)

// formatChoice is what the converter says where a format has to be chosen, and ownNamespace where the namespace to watch is proposed.
var (
	formatChoice = regexp.MustCompile(`set spec\.format to (?:"[^" ]+"(?:, | or )?)+`)
	ownNamespace = regexp.MustCompile(`set spec\.registryV1\.watchNamespaces: \[([^]]*)]`)
	quotedFormat = regexp.MustCompile(`"([^" ]+)"`)
)

// FlagsFor is a remedy that names flags instead of fields.
func FlagsFor(remedy string) string {
	remedy = formatChoice.ReplaceAllStringFunc(remedy, func(choice string) string {
		return quotedFormat.ReplaceAllString(strings.Replace(choice, "set spec.format to", "choose with", 1), "--format $1")
	})
	return fieldsAsFlags.Replace(ownNamespace.ReplaceAllString(remedy, "give --watch-namespace $1"))
}

// InFlags is the same for warnings of the converter.
func InFlags(warnings []string) []string {
	said := make([]string, 0, len(warnings))
	for _, w := range warnings {
		said = append(said, FlagsFor(w))
	}
	return said
}

// EnumFlag adds a flag that takes one of a few words, and completes them.
func (a *App) EnumFlag(cmd *cobra.Command, value *string, name, short, help string, allowed ...string) {
	cmd.Flags().VarP(printer.Enum{Value: value, Allowed: allowed}, name, short, help+" One of: "+strings.Join(allowed, ", ")+".")
	a.CompleteFlag(cmd, name, Fixed(allowed...))
}

// OutputFlag adds -o; the first of the formats is the default.
func (a *App) OutputFlag(cmd *cobra.Command, o *printer.Output, formats ...printer.Output) {
	*o = formats[0]
	words := make([]string, 0, len(formats))
	for _, f := range formats {
		words = append(words, string(f))
	}
	a.EnumFlag(cmd, (*string)(o), "output", "o", "Format of the output.", words...)
}
