package azure

import (
	"errors"
	"fmt"
	"strings"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// relation is a federated identity credential, and what it is of.
type relation struct {
	config
	credential, audience string
}

func relationOf(i trust.Identity) (relation, error) {
	c, err := target.Checked[config](Adapter{}, i.ProviderConfig)
	if err != nil {
		return relation{}, err
	}
	side := relation{credential: trust.Cut("credence_"+i.Label(), 120), config: c}
	if len(i.Audiences) != 1 {
		return side, fmt.Errorf("it has %d audiences, and a federated identity credential of Azure has exactly one: leave one in spec.audiences, usually api://AzureADTokenExchange", len(i.Audiences))
	}
	side.audience = i.Audiences[0]
	return side, nil
}

func writeCommands(i trust.Identity) (string, error) {
	side, err := relationOf(i)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(side.audience, "@") || strings.HasPrefix(side.audience, "-") {
		return "", errors.New("its audience begins with @ or -, which the Azure CLI takes for a file or an option: use -o terraform")
	}
	subscription := ""
	if side.subscription != "" {
		subscription = " --subscription=" + trust.Shell(side.subscription)
	}
	find := func(what string) string {
		return fmt.Sprintf(`$(az identity list%s --query "[?clientId=='%s'].%s" --output tsv)`, subscription, side.client, what)
	}
	return fmt.Sprintf(`# The managed identity whose client ID is %s, in tenant %s. An app registration takes the same values by
# az ad app federated-credential create.
IDENTITY_NAME=%s
RESOURCE_GROUP=%s

%s`, side.client, side.tenant, find("name"), find("resourceGroup"),
		trust.Command(`az identity federated-credential create --identity-name "$IDENTITY_NAME" --resource-group "$RESOURCE_GROUP"`+subscription,
			[2]string{"--name=", side.credential}, [2]string{"--issuer=", i.Issuer},
			[2]string{"--subject=", i.Subject}, [2]string{"--audiences=", side.audience})), nil
}

func writeTerraform(i trust.Identity, side relation) string {
	name := i.ResourceName()
	return fmt.Sprintf("# With hashicorp/azurerm 5 or newer. The ID of the managed identity whose client ID is %s, in tenant %s.\n", side.client, side.tenant) +
		"variable \"" + name + "_id\" {\n  type = string\n}\n\n" +
		trust.Block("resource", []string{"azurerm_federated_identity_credential", name}, trust.Member{"name", side.credential},
			trust.Member{"user_assigned_identity_id", trust.Reference("var." + name + "_id")},
			trust.Member{"issuer", i.Issuer}, trust.Member{"subject", i.Subject}, trust.Member{"audience", []string{side.audience}})
}
