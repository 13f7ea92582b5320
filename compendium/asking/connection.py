"""One connection to an endpoint: who vouches for it, and nothing from the environment that is meant for another."""

import os
import ssl

import openai

from compendium.asking.errors import EndpointError


def authorities():
    """Who vouches for a server: what SSL_CERT_FILE or SSL_CERT_DIR name, else the usual authorities (True)."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:
        raise EndpointError(f"SSL_CERT_FILE={file or ''}: cannot be read as certificates ({error})") from None


def openai_client(endpoint, key) -> openai.AsyncOpenAI:
    """The client, told everything: nothing but the key may come from the environment, and a proxy's address."""
    endpoint.check_proxy()
    # A proxy named in the environment has no business between this machine and itself. Redirects are not followed:
    # they would hand prompt and key to another host.
    http = openai.DefaultAsyncHttpxClient(
        trust_env=not endpoint.loopback, follow_redirects=False, verify=authorities()
    )
    client = openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=key.reveal(),
        max_retries=0,
        timeout=endpoint.timeout,
        http_client=http,
    )
    client.organization = client.project = None  # read from variables that are meant for another provider
    return client
