use super::*;

fn settings_from(text: &str) -> Result<ConnectionSettings, SettingsError> {
    settings_from_parameters(&parse_connection_string(text)?, local_defaults())
}

fn local_defaults() -> LocalDefaults {
    LocalDefaults {
        system_user: Some("me".to_owned()),
        socket_folder: "/run/pg".into(),
        ..LocalDefaults::default()
    }
}

#[test]
fn an_address_states_servers_user_database_and_password() {
    for (text, servers, user, database, password) in [
        ("postgresql://", "/run/pg/.s.PGSQL.5432", "me", "me", ""),
        ("postgres://ann:s%40cret@db.example:6432/plans", "db.example:6432", "ann", "plans", "s@cret"),
        ("postgresql://ann@db.example", "db.example:5432", "ann", "ann", ""),
        ("postgresql://[::1]:6432/x", "::1:6432", "me", "x", ""),
        ("postgresql://a:1,b:2/x", "a:1 b:2", "me", "x", ""),
        ("postgresql://a,b/x?port=9", "a:9 b:9", "me", "x", ""),
        ("postgresql://%2Fvar%2Frun:7/x", "/var/run/.s.PGSQL.7", "me", "x", ""),
        ("postgresql:///x?host=/tmp&user=ann", "/tmp/.s.PGSQL.5432", "ann", "x", ""),
        ("host=db port = 7  dbname='my plans' password='it\\'s'", "db:7", "me", "my plans", "it's"),
        ("host=db hostaddr=10.0.0.1", "db:5432", "me", "me", ""),
        ("hostaddr=10.0.0.1", "10.0.0.1:5432", "me", "me", ""),
        ("dbname=x password=a\\ b", "/run/pg/.s.PGSQL.5432", "me", "x", "a b"),
    ] {
        let settings = settings_from(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let server_names: Vec<String> = settings.servers.iter().map(ToString::to_string).collect();
        let config = &settings.servers[0].0;
        assert_eq!(
            (server_names.join(" ").as_str(), config.get_user(), config.get_dbname()),
            (servers, Some(user), Some(database)),
            "{text}"
        );
        assert_eq!(config.get_password().unwrap_or_default(), password.as_bytes(), "{text}");
    }
}

#[test]
fn the_url_of_another_user_has_nothing_of_the_first_user() {
    for (text, expected) in [
        (
            "postgresql://ann:a%40b@db:7/x?sslmode=require",
            Some("postgresql://deck:pw@db:7/x?sslmode=require"),
        ),
        ("postgres://db", Some("postgres://deck:pw@db")),
        (" postgresql://ann@/x?host=/tmp", Some("postgresql://deck:pw@/x?host=/tmp")),
        ("postgresql:///x?user=ann&host=/tmp", None),
        ("postgresql://db/x?password=hunter2", None),
        ("host=db password=hunter2", None),
        ("secret://db", None),
    ] {
        assert_eq!(url_with_credentials(text, "deck", "pw").as_deref(), expected, "{text}");
    }
}

#[test]
fn unusable_settings_are_refused_without_showing_a_possible_password() {
    for (text, expected_text) in [
        ("", "neither postgresql://"),
        ("hunter2", "neither postgresql://"),
        ("mysql://ann:hunter2@db/x?a=b", "neither postgresql://"),
        ("postgresql://ann:hun@ter2@db/x", "encode `@`"),
        ("postgresql://ann:hun/hunter2@db/x", "encode `@`"),
        ("postgresql://ann:hunter2%@db/x", "encode `@`"),
        ("postgresql://ann:hunter2%00@db/x", "encode `@`"),
        ("postgresql://[::1/x", "encode `@`"),
        ("postgresql://ann:hunter2", "invalid value for option `port`"),
        ("postgresql://db/x?hunter2=1", "unknown connection parameter"),
        ("postgresql://db/x?sslcert=hunter2", "`sslcert` (PGSSLCERT) is set but not supported"),
        ("host=db require_auth=hunter2", "`require_auth` (PGREQUIREAUTH) can only be scram-sha-256"),
        ("password=hunter2 hunter2", "cannot be read"),
        ("password=pass hunter2=x", "unknown connection parameter"),
        ("password='hunter2", "cannot be read"),
        ("host=db port=hunter2", "invalid value for option `port`"),
        ("host=a,b port=1,2,3", "`port` has more or fewer"),
        ("host=a,b hostaddr=10.0.0.1", "`hostaddr` has more or fewer"),
        ("host=a hostaddr=hunter2", "invalid value for option `hostaddr`"),
        ("host=db sslmode=hunter2", "invalid value for option `sslmode`"),
        ("host=db sslmode=verify-ca", "sslmode=verify-ca needs the certificate"),
        ("host=db sslmode=require sslrootcert=system", "sslrootcert=system needs"),
        ("host=db connect_timeout=hunter2", "invalid value for option `connect_timeout`"),
        ("host=db target_session_attrs=standby", "invalid value for option `target_session_attrs`"),
        ("host=db target_session_attrs=read-only", "a board is written to"),
        ("host=db channel_binding=hunter2", "invalid value for option `channel_binding`"),
    ] {
        let error = settings_from(text).expect_err(text).to_string();
        assert!(error.contains(expected_text) && !error.contains("hunter2"), "{text}: {error}");
    }
    let shown = format!("{:?}", settings_from("password=hunter2 host=db").expect("settings"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn tls_modes_mean_what_they_mean_to_libpq() {
    let file = |by_name| CertificateTrust::File { path: "/root.crt".into(), checks_host_name: by_name };
    for (text, root, ssl, trust) in [
        ("host=db", "", SslMode::Prefer, CertificateTrust::Any),
        ("host=db sslmode=require", "", SslMode::Require, CertificateTrust::Any),
        // An existing root certificate is also used by `require`.
        ("host=db sslmode=require", "/root.crt", SslMode::Require, file(false)),
        ("host=db sslmode=verify-ca", "/root.crt", SslMode::VerifyCa, file(false)),
        ("host=db sslmode=verify-full sslrootcert=/root.crt", "/other.crt", SslMode::VerifyFull, file(true)),
        ("host=db sslmode=verify-full sslrootcert=system", "", SslMode::VerifyFull, CertificateTrust::System),
        ("postgresql://db/x?ssl=true", "", SslMode::Require, CertificateTrust::Any),
    ] {
        let root = Some(PathBuf::from(root)).filter(|path| path.is_absolute());
        let parameters = parse_connection_string(text).expect(text);
        let settings = settings_from_parameters(
            &parameters,
            LocalDefaults { root_certificate: root, ..local_defaults() },
        )
        .expect(text);
        assert_eq!((settings.ssl_mode, settings.certificate_trust), (ssl, trust), "{text}");
    }
}

#[test]
fn libpq_variables_are_read() {
    let variable = |name: &str| match name {
        "PGHOST" => Some("db".to_owned()),
        "PGPASSWORD" => Some("secret".to_owned()),
        "PGCONNECT_TIMEOUT" => Some("1".to_owned()),
        "PGTARGETSESSIONATTRS" => Some("read-write".to_owned()),
        _ => None,
    };
    let settings =
        settings_from_parameters(&parameters_from_environment(variable), local_defaults()).expect("settings");
    assert_eq!(settings.servers[0].to_string(), "db:5432");
    let config = &settings.servers[0].0;
    assert_eq!(config.get_password(), Some(&b"secret"[..]));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(2)));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(
        settings_from_parameters(&Parameters::new(), LocalDefaults::default()).err(),
        Some(SettingsError::NoUser)
    );
}

#[test]
fn a_password_file_has_wildcards_and_escapes() {
    let text = "# db:5432:x:me:comment\ndb:5432:x:me:one\ndb:*:x:ann:t\\:w\\\\o:rest\n\\*:*:*:*:star\n*:*:*:*:any\nshort:1\n";
    for (host, port, database, user, expected) in [
        ("db", 5432, "x", "me", "one"),
        ("db", 6432, "x", "ann", "t:w\\o"),
        ("*", 1, "y", "z", "star"),
        ("other", 1, "y", "z", "any"),
    ] {
        let password = pass_file::find_password(text, host, port, database, user);
        assert_eq!(password.as_deref(), Some(expected), "{host} {port} {database} {user}");
    }
    assert_eq!(pass_file::find_password("db:1:x:me:one", "db", 2, "x", "me"), None);
    let here = LocalDefaults {
        pass_file_text: "localhost:5432:me:me:local\n/tmp:5432:me:me:tmp".to_owned(),
        ..local_defaults()
    };
    for (text, expected) in [("", "local"), ("host=/run/pg", "local"), ("host=/tmp", "tmp")] {
        let parameters =
            if text.is_empty() { Parameters::new() } else { parse_connection_string(text).expect(text) };
        let settings = settings_from_parameters(&parameters, here.clone()).expect(text);
        assert_eq!(settings.servers[0].0.get_password(), Some(expected.as_bytes()), "{text}");
    }
}

#[test]
fn a_service_is_a_section_of_its_file() {
    let text = "[first]\nhost=one\n\n# comment\n[second]\nhost = two\nport=7\n[second]\nhost=three\n[broken]\nhost\n[odd]\nfoo=1\n";
    let section = |name| service_file::parse_section(text, "/pg_service.conf", name);
    assert_eq!(section("second"), Ok(Some([("host", "two".to_owned()), ("port", "7".to_owned())].into())));
    assert_eq!(section("none"), Ok(None));
    assert_eq!(
        section("broken"),
        Err(SettingsError::InvalidServiceLine { path: "/pg_service.conf".into(), line: 11 })
    );
    assert_eq!(section("odd"), Err(SettingsError::UnknownParameter));
}

/// The parameters and variables in the manuals of libpq 19 and earlier versions that are still in use.
const KEYWORDS_OF_LIBPQ: &str = "application_name authtype channel_binding client_encoding connect_timeout dbname \
    fallback_application_name gssdelegation gssencmode gsslib host hostaddr keepalives keepalives_count keepalives_idle \
    keepalives_interval krbsrvname load_balance_hosts max_protocol_version min_protocol_version oauth_ca_file oauth_client_id \
    oauth_client_secret oauth_issuer oauth_scope options passfile password port replication require_auth requirepeer requiressl \
    scram_client_key scram_server_key service servicefile ssl_max_protocol_version ssl_min_protocol_version sslcert sslcertmode \
    sslcompression sslcrl sslcrldir sslkey sslkeylogfile sslmode sslnegotiation sslpassword sslrootcert sslsni \
    target_session_attrs tcp_user_timeout tty user";
const VARIABLES_OF_LIBPQ: &str = "PGAPPNAME PGCHANNELBINDING PGCLIENTENCODING PGCONNECT_TIMEOUT PGDATABASE PGDATESTYLE PGGEQO \
    PGGSSDELEGATION PGGSSENCMODE PGGSSLIB PGHOST PGHOSTADDR PGKRBSRVNAME PGLOADBALANCEHOSTS PGLOCALEDIR PGMAXPROTOCOLVERSION \
    PGMINPROTOCOLVERSION PGOAUTHCAFILE PGOAUTHDEBUG PGOPTIONS PGPASSFILE PGPASSWORD PGPORT PGREALM PGREQUIREAUTH PGREQUIREPEER \
    PGREQUIRESSL PGSERVICE PGSERVICEFILE PGSSLCERT PGSSLCERTMODE PGSSLCOMPRESSION PGSSLCRL PGSSLCRLDIR PGSSLKEY \
    PGSSLMAXPROTOCOLVERSION PGSSLMINPROTOCOLVERSION PGSSLMODE PGSSLNEGOTIATION PGSSLROOTCERT PGSSLSNI PGSYSCONFDIR \
    PGTARGETSESSIONATTRS PGTTY PGTZ PGUSER";

#[test]
fn every_libpq_setting_is_supported_rejected_or_documented() {
    let sorted = |names: Vec<&'static str>| {
        let mut names = names;
        names.sort_unstable();
        names
    };
    let honored = SUPPORTED_PARAMETERS.iter().map(|(keyword, variable)| (*keyword, *variable));
    let refused = REJECTED_PARAMETERS.iter().map(|(keyword, variable, _)| (*keyword, *variable));
    let (keywords, variables): (Vec<_>, Vec<_>) = honored.chain(refused).unzip();
    let keywords = sorted(keywords.into_iter().chain(IGNORED_PARAMETERS).collect());
    assert_eq!(keywords, KEYWORDS_OF_LIBPQ.split_whitespace().collect::<Vec<_>>(), "each once");
    // Two variables name files; the others make no difference.
    let variables: Vec<&str> = variables.into_iter().chain(["PGSERVICEFILE", "PGSYSCONFDIR"]).collect();
    let ignored = VARIABLES_OF_LIBPQ.split_whitespace().filter(|name| !variables.contains(name));
    let docs = include_str!("../../../../docs/fleet.md");
    for name in ignored.chain(IGNORED_PARAMETERS) {
        assert!(docs.contains(&format!("`{name}`")), "docs/fleet.md says nothing of {name}");
    }
    for keyword in IGNORED_PARAMETERS {
        assert!(settings_from(&format!("host=db {keyword}=1")).is_ok(), "{keyword}");
    }
    for (keyword, variable, allowed_values) in REJECTED_PARAMETERS {
        let settings_with = |value: &str| settings_from(&format!("host=db {keyword}={value}"));
        let error = settings_with("hunter2").expect_err(keyword).to_string();
        assert!(error.contains(keyword) && !error.contains("hunter2"), "{error}");
        assert!(allowed_values.iter().all(|value| settings_with(value).is_ok()), "{keyword}");
        if variable.is_empty() {
            continue;
        }
        let parameters_by_variable =
            parameters_from_environment(|name| (name == variable).then(|| "hunter2".to_owned()));
        let error = settings_from_parameters(&parameters_by_variable, local_defaults())
            .expect_err(variable)
            .to_string();
        assert!(error.contains(variable), "{error}");
        // A value in the address overrides the variable.
        let Some(value) = allowed_values.first() else { continue };
        let address_parameters =
            parse_connection_string(&format!("host=db {keyword}={value}")).expect(keyword);
        let all_parameters: Parameters =
            parameters_by_variable.into_iter().chain(address_parameters).collect();
        assert!(settings_from_parameters(&all_parameters, local_defaults()).is_ok(), "{keyword}");
    }
}

#[test]
fn a_required_login_method_is_ensured_or_refused() {
    for (text, expected) in [
        ("require_auth=scram-sha-256", Some(ChannelBinding::Require)),
        (
            "require_auth=scram-sha-256 channel_binding=prefer sslmode=verify-full sslrootcert=/x",
            Some(ChannelBinding::Require),
        ),
        ("channel_binding=prefer", Some(ChannelBinding::Prefer)),
        ("require_auth=scram-sha-256 channel_binding=disable", None),
        ("require_auth=scram-sha-256 sslmode=disable", None),
        ("require_auth=md5", None),
        ("require_auth=!password", None),
        ("require_auth=scram-sha-256,md5", None),
        ("require_auth=none", None),
    ] {
        let binding = settings_from(&format!("host=db {text}"))
            .map(|settings| settings.servers[0].0.get_channel_binding());
        assert_eq!(binding.ok(), expected, "{text}");
    }
}

#[test]
fn requiressl_counts_only_if_sslmode_is_not_set() {
    let variables = |mode: Option<&'static str>| {
        parameters_from_environment(move |name| match name {
            "PGREQUIRESSL" => Some("1".to_owned()),
            "PGSSLMODE" => mode.map(str::to_owned),
            _ => None,
        })
    };
    for (mode, expected) in [(None, SslMode::Require), (Some("disable"), SslMode::Disable)] {
        assert_eq!(
            settings_from_parameters(&variables(mode), local_defaults()).map(|settings| settings.ssl_mode),
            Ok(expected)
        );
    }
}
