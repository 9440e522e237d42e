// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// sourceFlags name one source.
type sourceFlags struct {
	image, git, http, helmRepository, configMap string

	version                    string
	insecure                   bool
	branch, tag, commit        string
	digest                     string
	chart                      string
	secret, certSecret, ignore string
	interval                   time.Duration
}

// versionHelp is the help of --version.
const versionHelp = "Version, or a range such as 1.x of which the newest is taken: of tags of the image or the Git repository, or of the chart."

func (o *sourceFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.image, "image", "", "Image to take the bundle from, such as quay.io/org/bundle:v1.2.3.")
	flags.BoolVar(&o.insecure, "insecure", false, "The image's registry speaks plain HTTP; implied on loopback.")
	flags.StringVar(&o.git, "git", "", "URL of a Git repository to take the bundle from.")
	flags.StringVar(&o.branch, "branch", "", "Branch of the Git repository.")
	flags.StringVar(&o.tag, "tag", "", "Tag of the Git repository.")
	flags.StringVar(&o.commit, "commit", "", "Commit of the Git repository.")
	flags.StringVar(&o.version, "version", "", versionHelp)
	flags.StringVar(&o.http, "http", "", "URL of an archive to take the bundle from.")
	flags.StringVar(&o.digest, "digest", "", "Digest of the archive, as sha256:...")
	flags.StringVar(&o.helmRepository, "helm-repository", "", "URL of a Helm repository with an index to take a chart from.")
	flags.StringVar(&o.chart, "chart", "", "Name of the chart in the Helm repository.")
	flags.StringVar(&o.configMap, "config-map", "", "ConfigMap with the files of the bundle as keys.")
	flags.StringVar(&o.secret, "secret", "", "Secret of the namespace with the login to the registry or server.")
	flags.StringVar(&o.certSecret, "cert-secret", "", "Secret of the namespace with the CA or the client certificate; for Git, it is part of --secret.")
	flags.StringVar(&o.ignore, "ignore", "", "Patterns of files to leave out, in the syntax of .gitignore.")
	flags.DurationVar(&o.interval, "source-interval", 0, "How often a moving reference is resolved again; without it: 10m.")
}

// kinds are the kinds of sources that were given, by their flags.
func (o *sourceFlags) kinds() []string {
	var given []string
	for _, kind := range []struct{ flag, value string }{
		{"image", o.image}, {"git", o.git}, {"http", o.http}, {"helm-repository", o.helmRepository}, {"config-map", o.configMap},
	} {
		if kind.value != "" {
			given = append(given, kind.flag)
		}
	}
	return given
}

// suits are the kinds of sources for which a flag has an effect.
var suits = map[string][]string{
	"insecure": {"image"}, "version": {"image", "git", "helm-repository"}, "branch": {"git"}, "tag": {"git"}, "commit": {"git"}, "digest": {"http"},
	"chart":  {"helm-repository"},
	"secret": {"image", "git", "http", "helm-repository"}, "cert-secret": {"image", "http", "helm-repository"},
}

// check refuses flags without an effect on the given kind of source.
func (o *sourceFlags) check(cmd *cobra.Command, kind string) error {
	for flag, kinds := range suits {
		effective := false
		for _, suitable := range kinds {
			effective = effective || suitable == kind
		}
		if cmd.Flag(flag).Changed && !effective {
			return kit.UsageError(cmd, "--%s has no effect on a source of --%s", flag, kind)
		}
	}
	if kind == "helm-repository" && o.chart == "" {
		return kit.UsageError(cmd, "--helm-repository needs --chart, the name of a chart in it")
	}
	return nil
}

// spec is the source of the flags.
func (o *sourceFlags) spec(cmd *cobra.Command) (*v1alpha1.BundleSourceSpec, error) {
	given := o.kinds()
	if len(given) != 1 {
		return nil, kit.UsageError(cmd, "give one of --image, --git, --http, --helm-repository and --config-map, got %d", len(given))
	}
	if err := o.check(cmd, given[0]); err != nil {
		return nil, err
	}
	var source v1alpha1.Source
	switch given[0] {
	case "image":
		insecure, err := o.plainHTTP()
		if err != nil {
			return nil, err
		}
		source.Image = &v1alpha1.ImageSource{Reference: o.image, Version: o.version, Insecure: insecure, SecretRef: reference(o.secret), CertSecretRef: reference(o.certSecret)}
	case "git":
		source.Git = &v1alpha1.GitSource{URL: o.git, SecretRef: reference(o.secret)}
		if ref := (v1alpha1.GitRef{Branch: o.branch, Tag: o.tag, Version: o.version, Commit: o.commit}); ref != (v1alpha1.GitRef{}) {
			source.Git.Ref = &ref
		}
	case "http":
		source.HTTP = &v1alpha1.HTTPSource{URL: o.http, Digest: o.digest, SecretRef: reference(o.secret), CertSecretRef: reference(o.certSecret)}
	case "helm-repository":
		source.Helm = &v1alpha1.HelmSource{URL: o.helmRepository, Chart: o.chart, Version: o.version, SecretRef: reference(o.secret), CertSecretRef: reference(o.certSecret)}
	case "config-map":
		source.ConfigMap = reference(o.configMap)
	}
	spec := &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{source}, Ignore: o.ignore}
	return spec, setDuration(&spec.Interval, o.interval)
}

// plainHTTP tells whether the image's registry is spoken to over plain HTTP.
func (o *sourceFlags) plainHTTP() (bool, error) {
	ref, err := bundle.ImageReference(o.image, true)
	if err != nil {
		return false, fmt.Errorf("--image %w", err)
	}
	return o.insecure || bundle.IsLoopback(ref.Context().RegistryStr()), nil
}

// reference names an object; nil for none.
func reference(name string) *v1alpha1.LocalReference {
	if name == "" {
		return nil
	}
	return &v1alpha1.LocalReference{Name: name}
}

// setDuration sets a field unless the flag is left out.
func setDuration(field *v1alpha1.Duration, given time.Duration) error {
	switch {
	case given < 0:
		return errors.New("an interval is a time such as 10m, and not negative")
	case given > 0:
		field.Duration = given
	}
	return nil
}
