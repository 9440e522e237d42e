// SPDX-License-Identifier: Apache-2.0

// Package spec translates the spec of a BundleDeployment, with its defaults, into the options of the packages that
// do the work. The controller and the CLI both use it, so that a preview equals the execution.
package spec

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Given are the inputs of a conversion beside the bundle and the spec.
type Given struct {
	// Contents of the Secrets and ConfigMaps that the spec names.
	Contents Contents
	// Values for the templates of a chart, merged from them: see HelmValues.
	Values map[string]any
	// Capabilities of the target cluster; the zero value if they are not known.
	Capabilities helm.Capabilities
}

// Conversion returns the options for converting the bundle of a deployment.
func Conversion(d *v1alpha1.BundleDeployment, given Given, limits convert.Limits) convert.Options {
	adapted := Overlay(&d.Spec)
	for i, variables := range effective.Variables(&d.Spec) {
		adapted.Processors[i].Variables.Read = Variables(variables, given.Contents)
	}
	return convert.Options{
		Format: convert.Format(d.Spec.Format), Path: d.Spec.Path, InstallNamespace: effective.InstallNamespace(d),
		RegistryV1: RegistryV1(d.Spec.RegistryV1), Overlay: adapted, Limits: limits,
		Helm: helm.Options{
			ReleaseName: releaseNameOf(d), Values: given.Values, Secret: secretValues(d), Capabilities: given.Capabilities,
			Schemas: schemasOf(d),
		},
		ValuesFiles: valuesFiles(d),
	}
}

// schemasOf says what the schemas of a chart are used for.
func schemasOf(d *v1alpha1.BundleDeployment) helm.Schemas {
	if d.Spec.Helm == nil {
		return ""
	}
	return helm.Schemas(d.Spec.Helm.SchemaValidation)
}

// valuesFiles are the files with values for a chart.
func valuesFiles(d *v1alpha1.BundleDeployment) []string {
	if d.Spec.Helm == nil {
		return nil
	}
	var files []string
	for _, file := range d.Spec.Helm.ValuesFiles {
		files = append(files, string(file))
	}
	return files
}

// secretValues tells whether the values for a chart may come from Secrets.
func secretValues(d *v1alpha1.BundleDeployment) bool {
	return d.Spec.Helm != nil && slices.ContainsFunc(d.Spec.Helm.ValuesFrom, func(from v1alpha1.ValuesReference) bool { return from.Kind == SecretKind })
}

// AsksCapabilities tells whether the conversion of a bundle may depend on the cluster: whether it is a chart.
func AsksCapabilities(d *v1alpha1.BundleDeployment, files fs.FS) bool {
	if d.Spec.Format != "" {
		return d.Spec.Format == v1alpha1.FormatHelm
	}
	_, format, err := convert.Enter(files, convert.Options{Path: d.Spec.Path, InstallNamespace: effective.InstallNamespace(d)})
	return err == nil && format == convert.Helm // the conversion reports the failure
}

// RegistryV1 are the options of the format registry+v1, with defaults for those that are not set.
func RegistryV1(given *v1alpha1.RegistryV1Options) registryv1.Options {
	if given == nil {
		given = &v1alpha1.RegistryV1Options{}
	}
	var config json.RawMessage
	if given.DeploymentConfig != nil {
		config = given.DeploymentConfig.Raw
	}
	return registryv1.Options{
		WatchNamespaces:        given.WatchNamespaces,
		CertificateProvider:    cmp.Or(registryv1.CertificateProvider(given.CertificateProvider), registryv1.SelfSigned),
		DeploymentConfig:       config,
		OperatorConditions:     given.OperatorConditions,
		APIClusterRoles:        given.APIClusterRoles,
		PodAnnotations:         cmp.Or(registryv1.PodAnnotations(given.PodAnnotations), registryv1.AllAnnotations),
		IncludeCustomResources: given.IncludeCustomResources,
		LastKeys:               given.DuplicateKeys == "Last",
		RequirementsOptional:   given.Requirements == v1alpha1.Warn || given.Requirements == v1alpha1.EnforcementNone,
	}
}
