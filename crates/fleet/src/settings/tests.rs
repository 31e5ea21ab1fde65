use super::*;

fn found(text: &str) -> Result<Settings, SettingsError> {
    settings(&of_connection_string(text)?, here())
}

fn here() -> Here {
    Here { user: Some("me".to_owned()), socket_folder: "/run/pg".into(), ..Here::default() }
}

#[test]
fn an_address_says_where_and_as_whom() {
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
        let found = found(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let where_to: Vec<String> = found.servers.iter().map(ToString::to_string).collect();
        let config = &found.servers[0].0;
        assert_eq!(
            (where_to.join(" ").as_str(), config.get_user(), config.get_dbname()),
            (servers, Some(user), Some(database)),
            "{text}"
        );
        assert_eq!(config.get_password().unwrap_or_default(), password.as_bytes(), "{text}");
    }
}

#[test]
fn what_cannot_be_obeyed_is_refused_without_a_word_of_what_may_be_a_password() {
    for (text, words) in [
        ("", "neither postgresql://"),
        ("hunter2", "neither postgresql://"),
        ("mysql://ann:hunter2@db/x?a=b", "neither postgresql://"),
        ("postgresql://ann:hun@ter2@db/x", "encode `@`"),
        ("postgresql://ann:hun/hunter2@db/x", "encode `@`"),
        ("postgresql://ann:hunter2%@db/x", "encode `@`"),
        ("postgresql://ann:hunter2%00@db/x", "encode `@`"),
        ("postgresql://[::1/x", "encode `@`"),
        ("postgresql://ann:hunter2", "invalid value for option `port`"),
        ("postgresql://db/x?hunter2=1", "not known here"),
        ("postgresql://db/x?sslcert=hunter2", "`sslcert` (PGSSLCERT) is set, which is not supported"),
        ("host=db require_auth=hunter2", "`require_auth` (PGREQUIREAUTH) can only be scram-sha-256"),
        ("password=hunter2 hunter2", "cannot be read"),
        ("password=pass hunter2=x", "not known here"),
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
        let error = found(text).expect_err(text).to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{text}: {error}");
    }
    let shown = format!("{:?}", found("password=hunter2 host=db").expect("settings"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn tls_means_what_it_means_to_libpq() {
    let file = |by_name| Trust::File { path: "/root.crt".into(), by_name };
    for (text, root, ssl, trust) in [
        ("host=db", "", SslMode::Prefer, Trust::Anyone),
        ("host=db sslmode=require", "", SslMode::Require, Trust::Anyone),
        // A root that is there counts for `require`, too.
        ("host=db sslmode=require", "/root.crt", SslMode::Require, file(false)),
        ("host=db sslmode=verify-ca", "/root.crt", SslMode::VerifyCa, file(false)),
        ("host=db sslmode=verify-full sslrootcert=/root.crt", "/other.crt", SslMode::VerifyFull, file(true)),
        ("host=db sslmode=verify-full sslrootcert=system", "", SslMode::VerifyFull, Trust::System),
        ("postgresql://db/x?ssl=true", "", SslMode::Require, Trust::Anyone),
    ] {
        let root = Some(PathBuf::from(root)).filter(|path| path.is_absolute());
        let parameters = of_connection_string(text).expect(text);
        let found = settings(&parameters, Here { root, ..here() }).expect(text);
        assert_eq!((found.ssl, found.trust), (ssl, trust), "{text}");
    }
}

#[test]
fn variables_are_libpqs() {
    let variable = |name: &str| match name {
        "PGHOST" => Some("db".to_owned()),
        "PGPASSWORD" => Some("secret".to_owned()),
        "PGCONNECT_TIMEOUT" => Some("1".to_owned()),
        "PGTARGETSESSIONATTRS" => Some("read-write".to_owned()),
        _ => None,
    };
    let found = settings(&of_environment(variable), here()).expect("settings");
    assert_eq!(found.servers[0].to_string(), "db:5432");
    let config = &found.servers[0].0;
    assert_eq!(config.get_password(), Some(&b"secret"[..]));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(2)));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(settings(&Parameters::new(), Here::default()).err(), Some(SettingsError::NoUser));
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
        let found = pass_file::password(text, host, port, database, user);
        assert_eq!(found.as_deref(), Some(expected), "{host} {port} {database} {user}");
    }
    assert_eq!(pass_file::password("db:1:x:me:one", "db", 2, "x", "me"), None);
    let here = Here { passwords: "localhost:5432:me:me:local\n/tmp:5432:me:me:tmp".to_owned(), ..here() };
    for (text, expected) in [("", "local"), ("host=/run/pg", "local"), ("host=/tmp", "tmp")] {
        let parameters =
            if text.is_empty() { Parameters::new() } else { of_connection_string(text).expect(text) };
        let found = settings(&parameters, here.clone()).expect(text);
        assert_eq!(found.servers[0].0.get_password(), Some(expected.as_bytes()), "{text}");
    }
}

#[test]
fn a_service_is_a_section_of_its_file() {
    let text = "[first]\nhost=one\n\n# comment\n[second]\nhost = two\nport=7\n[second]\nhost=three\n[broken]\nhost\n[odd]\nfoo=1\n";
    let section = |name| service_file::section(text, "/pg_service.conf", name);
    assert_eq!(section("second"), Ok(Some([("host", "two".to_owned()), ("port", "7".to_owned())].into())));
    assert_eq!(section("none"), Ok(None));
    assert_eq!(
        section("broken"),
        Err(SettingsError::ServiceLine { path: "/pg_service.conf".into(), line: 11 })
    );
    assert_eq!(section("odd"), Err(SettingsError::UnknownParameter));
}

/// The parameters and variables of libpq's manual, of version 19 and of those before it that still run.
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
fn every_setting_of_libpq_has_one_treatment_and_is_obeyed_refused_or_documented() {
    let sorted = |names: Vec<&'static str>| {
        let mut names = names;
        names.sort_unstable();
        names
    };
    let honored = HONORED.iter().map(|(keyword, variable)| (*keyword, *variable));
    let refused = REFUSED.iter().map(|(keyword, variable, _)| (*keyword, *variable));
    let (keywords, variables): (Vec<_>, Vec<_>) = honored.chain(refused).unzip();
    let keywords = sorted(keywords.into_iter().chain(IGNORED).collect());
    assert_eq!(keywords, KEYWORDS_OF_LIBPQ.split_whitespace().collect::<Vec<_>>(), "each once");
    // Two name files, and the others make no difference.
    let variables: Vec<&str> = variables.into_iter().chain(["PGSERVICEFILE", "PGSYSCONFDIR"]).collect();
    let ignored = VARIABLES_OF_LIBPQ.split_whitespace().filter(|name| !variables.contains(name));
    let docs = include_str!("../../../../docs/fleet.md");
    for name in ignored.chain(IGNORED) {
        assert!(docs.contains(&format!("`{name}`")), "docs/fleet.md says nothing of {name}");
    }
    for keyword in IGNORED {
        assert!(found(&format!("host=db {keyword}=1")).is_ok(), "{keyword}");
    }
    for (keyword, variable, except) in REFUSED {
        let stated = |value: &str| found(&format!("host=db {keyword}={value}"));
        let error = stated("hunter2").expect_err(keyword).to_string();
        assert!(error.contains(keyword) && !error.contains("hunter2"), "{error}");
        assert!(except.iter().all(|value| stated(value).is_ok()), "{keyword}");
        if variable.is_empty() {
            continue;
        }
        let by_variable = of_environment(|name| (name == variable).then(|| "hunter2".to_owned()));
        let error = settings(&by_variable, here()).expect_err(variable).to_string();
        assert!(error.contains(variable), "{error}");
        // A value in the address overrides the variable.
        let Some(value) = except.first() else { continue };
        let stated = of_connection_string(&format!("host=db {keyword}={value}")).expect(keyword);
        let both: Parameters = by_variable.into_iter().chain(stated).collect();
        assert!(settings(&both, here()).is_ok(), "{keyword}");
    }
}

#[test]
fn a_required_way_to_log_in_is_ensured_or_refused() {
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
        let binding =
            found(&format!("host=db {text}")).map(|settings| settings.servers[0].0.get_channel_binding());
        assert_eq!(binding.ok(), expected, "{text}");
    }
}

#[test]
fn the_older_name_of_sslmode_counts_where_that_is_not_set() {
    let variables = |mode: Option<&'static str>| {
        of_environment(move |name| match name {
            "PGREQUIRESSL" => Some("1".to_owned()),
            "PGSSLMODE" => mode.map(str::to_owned),
            _ => None,
        })
    };
    for (mode, expected) in [(None, SslMode::Require), (Some("disable"), SslMode::Disable)] {
        assert_eq!(settings(&variables(mode), here()).map(|settings| settings.ssl), Ok(expected));
    }
}
