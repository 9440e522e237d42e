// SPDX-License-Identifier: Apache-2.0

package create

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// catalogFlags name a package of BundleCatalogs.
type catalogFlags struct {
	name               string
	channels, catalogs []string
}

func (o *catalogFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.name, "package", "", "Package of a BundleCatalog, instead of a source.")
	flags.StringArrayVar(&o.channels, "channel", nil, "Channel of the package that bundles and upgrades are taken from; may be repeated.")
	flags.StringArrayVar(&o.catalogs, "catalog", nil, "BundleCatalog to search; may be repeated. Without it: all that the namespace sees.")
}

// spec is spec.catalog of the flags, with a range of versions; nil without --package.
func (o *catalogFlags) spec(cmd *cobra.Command, version string) (*v1alpha1.CatalogPackage, error) {
	if o.name == "" {
		if len(o.channels) > 0 || len(o.catalogs) > 0 {
			return nil, kit.UsageError(cmd, "--channel and --catalog are about the package that --package names: add it")
		}
		return nil, nil //nolint:nilnil // there is a source instead
	}
	return &v1alpha1.CatalogPackage{Package: o.name, Version: version, Channels: o.channels, Catalogs: o.catalogs}, nil
}
